extension RunLoop.Dump.Item: CustomStringConvertible {
    /// The item in words, for example `timer "poll" (Daemon/main.swift:12) in default, due 3.500000000, every 0.5
    /// seconds`.
    public var description: String {
        var text = "\(title) in " + (isEverywhere ? "every mode" : modes.map(\.name).joined(separator: ", "))
        if isCommon { text += " (common)" }
        if let deadline { text += ", due \(deadline)" }
        if let detail { text += ", \(detail)" }
        return text
    }

    /// The item's kind, name and place, for example `timer "poll" (Daemon/main.swift:12)`.
    var title: String { kind.title(name, origin) }
}

extension RunLoop.Dump: CustomStringConvertible {
    /// A few lines of text: the loop, its modes, its scheduled items, and the counters.
    public var description: String {
        var lines = ["run loop\(name.map { " \"\($0)\"" } ?? "") at \(now)\(isVirtual ? " (virtual time)" : "")"]
        lines.append(
            runs.isEmpty ? "not running" : "running in " + runs.map(\.name).joined(separator: ", and within it in "))
        for mode in modes {
            let count = keepingAlive(mode).count
            var line = "mode \(mode)\(commonModes.contains(mode) ? " (common)" : ""): "
            line += count == 0 ? "empty" : "\(count) to wait for"
            if let deadline = nextDeadline(in: mode) { line += ", next due \(deadline)" }
            lines.append(line)
        }
        lines += items.map { "  \($0)" }
        for cycle in cyclesOfWaiting {
            lines.append("cycle of waiting: " + (cycle + cycle.prefix(1)).map(\.title).joined(separator: " awaits "))
        }
        lines.append("\(statistics)")
        return lines.joined(separator: "\n")
    }

    /// The dump as one line of JSON. Dates are seconds on the loop's clock; a missing value is `null`.
    public var json: String {
        JSONText.object(
            ("loop", .init(name)), ("now", .init(now)), ("virtual", .init(isVirtual)),
            ("runs", .init(runs.map(\.name))), ("commonModes", .init(commonModes.map(\.name))),
            (
                "modes",
                .array(
                    modes.map { mode in
                        .object(
                            ("name", .init(mode.name)), ("next", .init(nextDeadline(in: mode))),
                            ("keepingAlive", .init(keepingAlive(mode).count)))
                    })
            ),
            ("items", .array(items.map(\.jsonText))), ("statistics", statistics.jsonText)
        ).text
    }
}

extension RunLoop.Dump.Item {
    fileprivate var jsonText: JSONText {
        .object(
            ("kind", .init(kind.rawValue)), ("name", .init(name)), ("origin", .init("\(origin)")),
            ("modes", .init(modes.map(\.name))), ("common", .init(isCommon)), ("everywhere", .init(isEverywhere)),
            ("due", .init(deadline)), ("detail", .init(detail)))
    }
}

extension RunLoop.Statistics: CustomStringConvertible {
    /// The counters in words, for example `passes 12, waits 4, fires 9, …`.
    public var description: String {
        // A `Duration` would describe 87 µs as 8.7e-05 seconds.
        func seconds(_ duration: Duration) -> String { "\(RunLoop.Instant(nanoseconds: 0) + duration) s" }
        let late = [
            "\(seconds(lateness.quantile(0.5))) (half)", "\(seconds(lateness.quantile(0.99))) (99 %)",
            "\(seconds(lateness.maximum)) (all)",
        ]
        return counters.map { "\($0.name) \($0.value)" }.joined(separator: ", ")
            + ", late by " + late.joined(separator: ", ")
    }

    fileprivate var jsonText: JSONText {
        let counts = counters.map { ($0.name, JSONText($0.value)) }
        let late = JSONText.object(
            ("count", .init(lateness.count)), ("p50", .init(lateness.quantile(0.5))),
            ("p99", .init(lateness.quantile(0.99))), ("max", .init(lateness.maximum)))
        return .object(counts + [("lateness", late)])
    }
}
