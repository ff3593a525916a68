extension ScenarioEvent {
    /// The event in plain words, without its time; the same on every clock.
    public var words: String {
        switch kind {
        case .fire(let name, let count, _, let due, let missed, let manual):
            let late = missed > 0 ? ", due +\(decimalSeconds(due)), \(missed) missed" : ""
            return "\(escaped(name)) fires (\(count))\(manual ? " by hand" : late)"
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
