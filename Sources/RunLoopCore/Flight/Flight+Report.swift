extension Flight: CustomStringConvertible {
    /// The calls of one handler.
    public struct Usage: Sendable, Hashable {
        /// The handler; `nil` for handlers that there was no room to name.
        public let handler: Handler?
        /// The number of calls.
        public let calls: Int
        /// The time of the calls together, without the calls and sleeps nested in them.
        public let time: Duration
        /// The handler's longest call, with the calls and sleeps nested in it.
        public let longest: Duration
    }

    /// The handlers, by the time of their calls, the longest time first.
    public var usage: [Usage] {
        Dictionary(grouping: calls.filter { $0.duration != nil }, by: \.handler).map { handler, calls in
            Usage(handler: handler, calls: calls.count, time: calls.ownTime, longest: calls.longest)
        }.ordered { ($1.time, "\($0.handler as Handler?)") < ($0.time, "\($1.handler as Handler?)") }
    }

    /// A report of a page: the calls under way at the end, the time by reasons and handlers, and the newest calls.
    public var description: String {
        guard let first = entries.first, let last = entries.last else {
            return "\(loop), process \(process): no events\n"
        }
        let span = last.time - first.time
        var text = "\(loop), process \(process): \(entries.count) events in \(span.brief)"
        text += lost > 0 ? ", \(lost) before them are lost\n" : "\n"
        let unfinished = unfinished
        if !unfinished.isEmpty {
            text += "\nunder way at the end, the innermost last:\n"
            for call in unfinished {
                text += "  \(Self.name(call.handler)) in \(call.mode), for \((last.time - call.begin).brief)\n"
            }
        }
        text += wakeUpsReport
        let usage = usage
        if !usage.isEmpty {
            text += "\nhandlers, by the time of their calls:\n"
            for one in usage.prefix(20) {
                text +=
                    "  \(one.time.brief) in \(one.calls) \(one.calls == 1 ? "call" : "calls"), the longest \(one.longest.brief): "
                text += "\(Self.name(one.handler))\n"
            }
            if usage.count > 20 { text += "  and \(usage.count - 20) others\n" }
            text += tasksReport + trafficReport
            let delays = delays(of: .milliseconds(1), atMost: 5)
            if !delays.isEmpty { text += "\nthe latest timers:\n" }
            for delay in delays {
                text +=
                    "  \(delay.call.lateness!.brief) late at \(delay.call.begin): \(Self.name(delay.call.handler))\n"
                for cause in delay.causes.prefix(3) {
                    let duration = cause.duration.map { "took \($0.brief)" } ?? "is under way"
                    text += "    \(Self.name(cause.handler)) \(duration)\n"
                }
            }
            text += "\nthe newest calls:\n"
            for call in calls.suffix(10) {
                let indent = String(repeating: "  ", count: call.depth + 1)
                let duration = call.duration.map { "took \($0.brief)" } ?? "is under way"
                text += "\(indent)\(call.begin) \(Self.name(call.handler)) \(duration)\(words(for: call.cause))\n"
            }
        }
        return text
    }

    private var wakeUpsReport: String {
        var text = "\nthe loop slept for \(sleep.brief)"
        text += idleWakeUps > 0 ? ", and woke up \(idleWakeUps) times without a call\n" : "\n"
        for one in wakeUps.prefix(8) {
            text += "  woken \(one.count) times by \(one.reason)"
            text += one.idle > 0 ? ", \(one.idle) of them without a call\n" : "\n"
        }
        return text
    }

    private var tasksReport: String {
        let tasks = tasks
        guard !tasks.isEmpty else { return "" }
        var text = "\ntasks, by their polls:\n"
        for task in tasks.prefix(10) {
            text += "  \(task.polls) polls in \(task.time.brief), the longest \(task.longest.brief), "
            text += "\(task.wakes) wakes, waited for its turn for at most \(task.longestWait.brief): \(task.name)\n"
        }
        return text + (tasks.count > 10 ? "  and \(tasks.count - 10) others\n" : "")
    }

    private var trafficReport: String {
        let traffic = traffic
        guard !traffic.isEmpty else { return "" }
        var text = "\nconnections, by their bytes:\n"
        for one in traffic.prefix(10) {
            text += "  \(one.received) received, \(one.sent) sent: \(Self.name(one.connection)) "
            text += "on descriptor \(one.descriptor)\n"
        }
        return text + (traffic.count > 10 ? "  and \(traffic.count - 10) others\n" : "")
    }

    private func words(for cause: Cause?) -> String {
        guard let cause else { return "" }
        if let thread = cause.thread { return ", posted by the thread \"\(thread)\"" }
        return cause.handler.map { ", caused by \($0)" } ?? ""
    }

    private static func name(_ handler: Handler?) -> String { handler.map { "\($0)" } ?? "handlers without a name" }
}

extension Duration {
    /// The duration in three digits with a unit, for example `2.19 µs`.
    fileprivate var brief: String {
        let all = nanoseconds
        guard all < .max, self >= .zero else { return "\(self)" }
        let units: [(String, Int64)] = [("s", 1_000_000_000), ("ms", 1_000_000), ("µs", 1000)]
        guard let (unit, size) = units.first(where: { all >= $0.1 }) else { return "\(all) ns" }
        let (whole, rest) = all.quotientAndRemainder(dividingBy: size)
        let decimals = padded("\(rest / (size / 1000))", to: 3)
        let text = "\(whole)." + decimals.prefix(max(0, 3 - "\(whole)".count))
        return (text.last == "." ? String(text.dropLast()) : text) + " \(unit)"
    }
}
