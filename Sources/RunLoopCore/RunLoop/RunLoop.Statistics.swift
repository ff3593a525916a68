extension RunLoop {
    /// What a loop has done, counted since it was made.
    public struct Statistics: Sendable, Hashable {
        /// Passes made.
        public internal(set) var passes = 0
        /// Times the loop went to sleep.
        public internal(set) var waits = 0
        /// Timers fired by the loop.
        public internal(set) var fires = 0
        /// Wake-ups that were not needed because several timers were served by one.
        public internal(set) var savedWakeUps = 0
        /// Sources served, custom ones and descriptors.
        public internal(set) var sources = 0
        /// Blocks run.
        public internal(set) var blocks = 0
        /// Descriptors parked because they were ready while their source could not be called.
        public internal(set) var parks = 0

        mutating func count(fires fired: Int, slept: Bool) {
            fires += fired
            guard slept else { return }
            waits += 1
            savedWakeUps += max(0, fired - 1)
        }
    }

    /// Something that a loop did, or declined to do.
    public enum TraceEvent: CustomStringConvertible {
        /// A run in a mode begins.
        case runBegan(Mode)
        /// A run in a mode has ended.
        case runEnded(Mode, RunResult)
        /// A timer fires, by its schedule or by hand.
        case fired(Timer, isManual: Bool)
        /// A timer source calls its event handler.
        case delivered(TimerSource)
        /// Something was asked that is ignored as documented; the text says what and why.
        case ignored(String)

        public var description: String {
            switch self {
            case .runBegan(let mode): "run \(mode)"
            case .runEnded(let mode, let result): "end \(mode) \(result)"
            case .fired(let timer, let isManual):
                "fire \(timer.name ?? "timer") due \(timer.fireDate) missed \(timer.missedFires)"
                    + (isManual ? " by hand" : "")
            case .delivered(let source): "deliver \(source.name ?? "source") data \(source.data)"
            case .ignored(let what): "ignored: \(what)"
            }
        }
    }

    /// What keeps the loop waiting, one line each; for reports of a run that can never wake.
    package func waitingItems() -> [String] {
        var lines: [String] = []
        for (id, state) in modeStates.enumerated() where state.sourceCount > 0 {
            lines.append("\(state.sourceCount) source(s) in \(Mode(id: id))")
        }
        for id in modeStates.indices.last.map({ 0...max(1, $0) }) ?? 0...1 {
            for case let timer as Timer in timers.clients(in: Mode(id: id)) {
                lines.append("\(timer.name ?? "timer") in \(Mode(id: id)), due \(timer.fireDate)")
            }
        }
        for case let source as TimerSourceCore in timers.clientsOfEveryMode { lines.append(source.waitingItem) }
        if !blocks.isEmpty { lines.append("\(blocks.count) block(s) for modes that do not run") }
        return lines
    }
}
