internal import CShims
internal import Glibc
@_spi(Ports) internal import RunLoopCore

/// The children that the library has started and not reaped. Other children are orphans that the system has assigned to
/// this process.
final class OwnChildren: Sendable {
    static let shared = OwnChildren()

    private struct State {
        var numbers: Set<Int32> = []
        /// The number of starts in progress: a child may end before its number is known.
        var starts = 0
        /// True if orphans must be reaped when no start is in progress.
        var mustReap = false
        /// True if the last search met one of the library's children, which may have hidden orphans.
        var hidesOthers = false
    }

    private let state = Locked(State())

    func startBegins() {
        state.withLock { $0.starts += 1 }
    }

    /// - Parameter number: the child's number; `nil` if the start failed.
    func startEnds(_ number: Int32?) {
        let mustReap = state.withLock { state in
            assert(state.starts > 0, "a start ends that has not begun")
            state.starts -= 1
            assert(
                number.map { !state.numbers.contains($0) } ?? true, "a child has the number of one that was not reaped")
            if let number { state.numbers.insert(number) }
            return state.starts == 0 && state.mustReap
        }
        if mustReap { reapOthers() }
    }

    /// Forgets a child that was reaped or is no longer awaited.
    func left(_ number: Int32) {
        let hidesOthers = state.withLock { state in
            state.numbers.remove(number)
            return state.hidesOthers
        }
        if hidesOthers { reapOthers() }
    }

    /// Reaps the ended children that the library did not start; later, if a start is in progress.
    func reapOthers() {
        state.withLock { state in
            assert(state.starts >= 0, "more starts have ended than begun")
            state.mustReap = state.starts > 0
            guard !state.mustReap else { return }
            state.hidesOthers = false
            var status: Int32 = 0
            while true {
                let number = rlk_ended_child()
                guard number > 0 else { return }
                // The system returns the same child again until it is reaped.
                guard !state.numbers.contains(number) else { break }
                _ = rlk_child_state(number, -1, 1, &status)
            }
            // The list may miss children while others end.
            state.hidesOthers = true
            for number in Self.allChildren where !state.numbers.contains(number) {
                _ = rlk_child_state(number, -1, 1, &status)
            }
        }
    }

    /// The children of all threads, running and ended; none on a system that does not list them.
    private static var allChildren: [Int32] {
        let (system, tasks) = (RealSystem.shared, "/proc/self/task")
        return (system.contentsOfDirectory(tasks) ?? []).flatMap { task in
            let text = system.contentsOfFile("\(tasks)/\(task)/children", upTo: .max - 1) ?? []
            return String(decoding: text, as: UTF8.self).split(separator: " ").compactMap { Int32($0) }
        }
    }
}
