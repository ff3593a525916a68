/// The contents of a loop's modes, except items with a deadline.
struct ModeTable {
    var common = ModeSet(.default)
    /// The state of each mode, by the mode's id.
    private var states: [ModeState] = []
    /// The state of any other mode: items that are in every mode.
    private var others = ModeState()

    @inline(__always)
    func state(of mode: RunLoop.Mode) -> ModeState { mode.id < states.count ? states[mode.id] : others }

    @inline(__always)
    func observedActivities(in mode: RunLoop.Mode) -> RunLoop.Activity {
        mode.id < states.count ? states[mode.id].observedActivities : others.observedActivities
    }

    /// Returns whether something besides timers keeps `mode` from being empty.
    @inline(__always)
    func isKeptAlive(_ mode: RunLoop.Mode) -> Bool {
        (mode.id < states.count ? states[mode.id].keepAliveCount : others.keepAliveCount) > 0
    }

    mutating func changeStates(of modes: ModeSet, _ change: (inout ModeState) -> Void) {
        modes.forEach { mode in
            while states.count <= mode.id { states.append(others) }
            change(&states[mode.id])
        }
    }

    mutating func changeStates(of membership: Membership, _ change: (inout ModeState) -> Void) {
        guard membership.isEverywhere else { return changeStates(of: membership.modes, change) }
        for id in states.indices { change(&states[id]) }
        change(&others)
    }

    /// Traps unless each mode knows the activities that its observers observe; for tests.
    func checkInvariants() {
        for state in states + [others] {
            let union = state.observers.reduce(into: RunLoop.Activity()) { $0.formUnion($1.observedActivities) }
            precondition(union == state.observedActivities, "a mode has lost count of its observed activities")
        }
    }
}

/// The state of a mode, except items with a deadline.
struct ModeState {
    /// The number of items that keep the mode from being empty.
    var keepAliveCount = 0
    var observers: [RunLoop.UntimedItem] = []
    var observedActivities: RunLoop.Activity = []
}
