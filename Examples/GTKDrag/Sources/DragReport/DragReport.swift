public import RunLoopKit

/// The calls before, during and after drags, and the rules that they follow. A `Sendable` value.
public struct DragReport: Sendable, CustomStringConvertible {
    /// A fire of a timer.
    public struct Fire: Sendable, Hashable {
        /// The time of the fire, and the first date of the grid that had passed.
        public let date, due: RunLoop.Instant
        /// The number of later dates that had passed as well.
        public let missed: Int

        /// Creates the fire of the timer whose callback runs.
        public init(of timer: Timer, at date: RunLoop.Instant) {
            self.init(date: date, due: timer.fireDate, missed: timer.missedFires)
        }

        /// Creates a fire.
        public init(date: RunLoop.Instant, due: RunLoop.Instant, missed: Int) {
            (self.date, self.due, self.missed) = (date, due, missed)
        }
    }

    /// A drag, during which the loop ran in the tracking mode.
    public struct Drag: Sendable, Hashable {
        public let begin, end: RunLoop.Instant

        /// Creates a drag from one date to another.
        public init(begin: RunLoop.Instant, end: RunLoop.Instant) {
            (self.begin, self.end) = (begin, end)
        }

        func contains(_ date: RunLoop.Instant) -> Bool { date > begin && date < end }
    }

    /// The time between two fires of both timers.
    public let interval: Duration
    /// A Boolean value that indicates whether a drag is expected.
    public let hasDrags: Bool
    /// The drags that have ended.
    public var drags: [Drag] = []
    /// The fires of the timer in the default mode, and of the timer in the common modes.
    public var usual: [Fire] = []
    public var common: [Fire] = []
    /// The dates of the frames, and of the calls of both display links: every frame in the common modes, and every other frame
    /// in the default mode.
    public var frames: [RunLoop.Instant] = []
    public var commonCalls: [RunLoop.Instant] = []
    public var usualCalls: [RunLoop.Instant] = []

    /// Creates a report without calls.
    public init(interval: Duration, hasDrags: Bool = true) {
        (self.interval, self.hasDrags) = (interval, hasDrags)
    }

    // MARK: Rules

    /// The broken rules, as sentences; empty if all are kept.
    public var faults: [String] {
        var faults: [String] = []
        for (name, fires) in [("the default timer", usual), ("the common timer", common)] {
            for fire in fires where fire.date < fire.due { faults.append("\(name) fired before \(fire.due)") }
            for (fire, next) in zip(fires, fires.dropFirst()) {
                let periods = (next.due - fire.due) / interval
                if periods != periods.rounded() { faults.append("\(name) left its grid at \(next.due)") }
                if Int(periods) != fire.missed + 1 {
                    faults.append(
                        "\(name) missed \(fire.missed) dates at \(fire.date), and \(Int(periods) - 1) are left out")
                }
            }
        }
        if drags.isEmpty && hasDrags { faults.append("no drag was made") }
        for drag in drags { faults += self.faults(of: drag) }
        if commonCalls.count != frames.count {
            faults.append("the common link was called \(commonCalls.count) times in \(frames.count) frames")
        }
        let others = frames.count { frame in !drags.contains { $0.contains(frame) } }
        if usualCalls.count * 5 < others * 2 || usualCalls.count > others / 2 + drags.count + 1 {
            faults.append("the default link was called \(usualCalls.count) times in \(others) frames outside of drags")
        }
        return faults
    }

    private func faults(of drag: Drag) -> [String] {
        var faults: [String] = []
        let length = drag.end - drag.begin
        for fire in usual where drag.contains(fire.date) {
            faults.append("the default timer fired at \(fire.date), in a drag")
        }
        let lost = usual.first { $0.date >= drag.end }.map(\.missed) ?? 0
        if lost < Int(length / interval) - 1 {
            faults.append("after a drag of \(length) only \(lost) dates were missed")
        }
        let fires = common.count { drag.contains($0.date) }
        if fires * 2 < Int(length / interval) {
            faults.append("the common timer fired \(fires) times in a drag of \(length)")
        }
        for call in usualCalls where drag.contains(call) {
            faults.append("the default link was called at \(call), in a drag")
        }
        return faults
    }

    // MARK: As text

    /// A line for each time and each of the four items.
    public var description: String {
        var lines = ["                    default timer  common timer  default link  common link   frames"]
        func line(_ title: String, _ isIn: (RunLoop.Instant) -> Bool) -> String {
            let counts = [
                usual.count { isIn($0.date) }, common.count { isIn($0.date) }, usualCalls.count(where: isIn),
                commonCalls.count(where: isIn), frames.count(where: isIn),
            ]
            return title.padded(to: 20)
                + zip(counts, [13, 14, 14, 13, 9]).map { count, width in "\(count)".padded(to: width, atEnd: false) }
                .joined()
        }
        lines.append(line("outside of drags") { date in !drags.contains { $0.contains(date) } })
        for drag in drags {
            lines.append(line("a drag of \(Int((drag.end - drag.begin) / .milliseconds(1))) ms") { drag.contains($0) })
            if let late = usual.first(where: { $0.date >= drag.end }) {
                lines.append(
                    "then the default timer fired once, \(Int((late.date - late.due) / .milliseconds(1))) ms late, "
                        + "and had missed \(late.missed) dates")
            }
        }
        return lines.joined(separator: "\n")
    }
}

extension String {
    fileprivate func padded(to width: Int, atEnd: Bool = true) -> String {
        let padding = String(repeating: " ", count: max(0, width - count))
        return atEnd ? self + padding : padding + self
    }
}
