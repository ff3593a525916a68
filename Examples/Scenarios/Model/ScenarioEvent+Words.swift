internal import RunLoopKit

extension ScenarioEvent {
    /// The event in plain words, without its time; the same on every clock.
    package var words: String {
        if isInBackground, case .action(let name, _, _, let action, let isFree) = kind {
            return "\(escaped(name)) acts in the background: \(escaped(action))\(isFree ? "; the name is free" : "")"
        }
        return plainWords + (isInBackground ? " in the background" : "")
    }

    private var isInBackground: Bool { thread.map { $0 != "main" } ?? false }

    /// The words without the thread.
    var plainWords: String {
        switch kind {
        case .fire(let name, let count, _, let due, let missed, let manual):
            let late = missed > 0 ? ", due +\(decimalSeconds(due)), \(missed) missed" : ""
            return "\(escaped(name)) fires (\(count))\(manual ? " by hand" : late)"
        case .delivery(let name, let count, _, let due, let data):
            let late = data > 1 ? ", due +\(decimalSeconds(due)), data \(data)" : ""
            return "\(escaped(name)) fires (\(count))\(late)"
        case .frame(let name, let count, _, _, let dropped):
            return "\(escaped(name)) is called (\(count))\(dropped > 0 ? ", \(dropped) dropped" : "")"
        case .action(let name, _, _, let action, let isFree):
            return "\(escaped(name)) acts: \(escaped(action))\(isFree ? "; the name is free" : "")"
        case .tick(let name, let count, _, let remaining):
            return "\(escaped(name)) ticks (\(count))\(remaining.map { ", \($0) left" } ?? "")"
        case .reading(let name, let text): return "\(escaped(name)) shows \(escaped(text))"
        case .cancelled(let name): return "\(escaped(name)) is cancelled"
        case .invalidated(let name): return "\(escaped(name)) is invalidated"
        case .deinit(let name): return "\(escaped(name)) deinits"
        case .runBegin(let mode): return "\(escaped(mode)) begins"
        case .runEnd(let mode): return "\(escaped(mode)) ends"
        case .busyBegin: return "the loop is busy"
        case .busyEnd: return "the loop is free again"
        case .end: return "end"
        }
    }
}
