internal import Glibc

/// The line of progress of a campaign, on standard error.
struct ProgressLine {
    struct State {
        let name: String
        var schedules = 0
        var findings = 0
        var missing: [String] = []
        /// The number of required marks.
        var required = 0
        /// The remaining time and the number of remaining schedules; `nil` without such a limit.
        var timeLeft: Duration?
        var schedulesLeft: Int?
    }

    private let isTerminal = isatty(2) != 0
    private var last = (time: ContinuousClock.now, schedules: 0)
    private var isShown = false

    /// Writes the line, if the last one is at least a second old on a terminal, and otherwise a minute.
    mutating func show(_ state: State, at now: ContinuousClock.Instant) {
        let passed = now - last.time
        guard passed >= (isTerminal ? .seconds(1) : .seconds(60)) else { return }
        let rate = Double(state.schedules - last.schedules) / (passed / .seconds(1))
        last = (now, state.schedules)
        isShown = true
        let line = Self.line(state, rate: rate)
        // A terminal shows one line, and the rest of the old one is cleared.
        Self.say(isTerminal ? "\r\(line)\u{1B}[K" : line + "\n")
    }

    /// Ends the line, before other output.
    func end() {
        if isTerminal, isShown { Self.say("\n") }
    }

    private static func say(_ text: String) {
        var text = text
        text.withUTF8 { _ = write(2, $0.baseAddress, $0.count) }
    }

    /// - Parameter rate: the number of schedules per second.
    static func line(_ state: State, rate: Double) -> String {
        var parts = [
            "\(state.name): \(grouped(state.schedules)) schedules", "\(grouped(Int(rate))) a second",
            "\(grouped(state.findings)) finding\(state.findings == 1 ? "" : "s")",
        ]
        if let first = state.missing.first {
            let others = state.missing.count > 1 ? " and others" : ""
            parts.append("\(state.missing.count) of \(state.required) marks missing (\(first)\(others))")
        }
        let ends = [
            state.timeLeft,
            state.schedulesLeft.flatMap { rate > 0 ? .seconds(Double($0) / rate) : nil },
        ]
        if let left = ends.compactMap(\.self).min() { parts.append("\(clock(left)) left") }
        return parts.joined(separator: ", ")
    }
}

/// Returns a number with commas, for example `1,000,000`.
func grouped(_ number: Int) -> String {
    var (text, rest) = ("", "\(number)"[...])
    while rest.count > 3 {
        text = "," + rest.suffix(3) + text
        rest.removeLast(3)
    }
    return rest + text
}

/// Returns a duration in hours, minutes and seconds, for example `8:00:00`.
func clock(_ duration: Duration) -> String {
    let seconds = Int(clamping: max(0, duration.components.seconds))
    func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return "\(seconds / 3_600):\(two(seconds / 60 % 60)):\(two(seconds % 60))"
}
