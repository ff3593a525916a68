#if Adapters
/// Decides when a program is told that its peer has read enough: not within a write of its own, and not while it is being told,
/// but in the loop's next turn.
struct DrainTurn {
    private enum State {
        case free
        /// The program writes, or is being told.
        case held
        /// The program is told in the next turn.
        case promised
    }
    private var state = State.free

    /// Begins a write of the program.
    ///
    /// - Returns: `false` if it is part of another call, which ends later.
    mutating func begin() -> Bool {
        guard state == .free else { return false }
        state = .held
        return true
    }

    /// Ends a write of the program, or the call that has told it.
    mutating func end() {
        if state == .held { state = .free }
    }

    /// The answer to a peer that has read enough.
    enum Decision {
        /// The program is told now; ``end()`` follows.
        case now
        /// The program is told in the next turn, after ``promiseIsDue()``.
        case later
        /// The same is promised already.
        case promised
    }

    mutating func peerHasRead() -> Decision {
        switch state {
        case .free:
            state = .held
            return .now
        case .held:
            state = .promised
            return .later
        case .promised: return .promised
        }
    }

    mutating func promiseIsDue() { state = .free }
}
#endif
