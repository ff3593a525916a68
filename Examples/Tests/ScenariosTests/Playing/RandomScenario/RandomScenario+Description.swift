import Scenarios

extension RandomScenario {
    /// Returns the scenario in the file format, one entry a line, so that the command-line player can replay a failure.
    static func describe(_ scenario: Scenario) -> String {
        let links = Set(scenario.links.map(\.name))
        let fields = [
            "\"duration\": \(seconds(scenario.duration))",
            "\"commonModes\": \(list(scenario.commonModes))",
            "\"timers\": \(lines(scenario.timers.map(describe)))",
            "\"sources\": \(lines(scenario.sources.map(describe)))",
            "\"links\": \(lines(scenario.links.map(describe)))",
            "\"named\": \(lines(scenario.named.map(describe)))",
            "\"countdowns\": \(lines(scenario.countdowns.map(describe)))",
            "\"busy\": \(lines(scenario.busy.map(describe)))",
            "\"runs\": \(lines(scenario.runs.map(describe)))",
            "\"actions\": \(lines(scenario.actions.map { describe($0, links) }))",
        ]
        return "{ " + fields.joined(separator: ",\n  ") + " }"
    }

    private static func describe(_ timer: Scenario.TimerEntry) -> String {
        var fields = ["\"name\": \(quoted(timer.name))", "\"first\": \(seconds(timer.first))"]
        if timer.repeats { fields.append("\"interval\": \(seconds(timer.interval))") }
        fields.append("\"repeats\": \(timer.repeats)")
        fields.append("\"modes\": \(list(timer.modes))")
        fields.append("\"busy\": \(seconds(timer.busy))")
        fields.append("\"tolerance\": \(seconds(timer.tolerance))")
        if let target = timer.target { fields.append(describe(target)) }
        return object(fields)
    }

    private static func describe(_ target: Scenario.Target) -> String {
        "\"target\": { \"name\": \(quoted(target.name)), \"hold\": \(quoted(target.hold.rawValue)) }"
    }

    private static func describe(_ source: Scenario.SourceEntry) -> String {
        var fields = ["\"name\": \(quoted(source.name))", "\"start\": \(seconds(source.start))"]
        if source.interval > 0 { fields.append("\"interval\": \(seconds(source.interval))") }
        fields.append("\"leeway\": \(seconds(source.leeway))")
        fields.append("\"on\": \(quoted(source.queue.rawValue))")
        fields.append("\"busy\": \(seconds(source.busy))")
        fields.append("\"active\": \(source.isActive)")
        if let count = source.cancelAfter { fields.append("\"cancelAfter\": \(count)") }
        if let target = source.target { fields.append(describe(target)) }
        return object(fields)
    }

    private static func describe(_ link: Scenario.LinkEntry) -> String {
        object([
            "\"name\": \(quoted(link.name))", "\"rate\": \(link.rate)", "\"preferred\": \(link.preferred)",
            "\"modes\": \(list(link.modes))", "\"busy\": \(seconds(link.busy))", "\"meter\": \(link.hasMeter)",
        ])
    }

    private static func describe(_ named: Scenario.NamedEntry) -> String {
        object([
            "\"name\": \(quoted(named.name))", "\"at\": \(seconds(named.at))",
            "\"interval\": \(seconds(named.interval))", "\"repeats\": \(named.repeats)",
            "\"fireInstantly\": \(named.fireInstantly)", "\"on\": \(quoted(named.queue.rawValue))",
            "\"action\": \(quoted(named.action))", "\"busy\": \(seconds(named.busy))",
        ])
    }

    private static func describe(_ countdown: Scenario.CountdownEntry) -> String {
        var fields = ["\"name\": \(quoted(countdown.name))", "\"interval\": \(seconds(countdown.interval))"]
        if let count = countdown.from { fields.append("\"from\": \(count)") }
        fields.append("\"pausing\": \(quoted(countdown.pausing.rawValue))")
        return object(fields)
    }

    private static func describe(_ busy: Scenario.BusyEntry) -> String {
        object([
            "\"at\": \(seconds(busy.at))", "\"for\": \(seconds(busy.duration))", "\"modes\": \(list(busy.modes))",
        ])
    }

    private static func describe(_ run: Scenario.RunEntry) -> String {
        object([
            "\"mode\": \(quoted(run.mode))", "\"from\": \(seconds(run.from))", "\"until\": \(seconds(run.until))",
        ])
    }

    private static func describe(_ action: Scenario.ActionEntry, _ links: Set<String>) -> String {
        object(["\"at\": \(seconds(action.at))"] + fields(of: action.verb, links))
    }

    private static func fields(of verb: Scenario.ActionEntry.Verb, _ links: Set<String>) -> [String] {
        switch verb {
        case .invalidate(let timer): ["\"invalidate\": \(quoted(timer))"]
        case .fire(let timer): ["\"fire\": \(quoted(timer))"]
        case .setFireDate(let timer, let date): ["\"setFireDate\": \(quoted(timer))", "\"to\": \(seconds(date))"]
        case .drop(let target): ["\"drop\": \(quoted(target))"]
        case .addMode(let mode, let item):
            ["\"addMode\": \(quoted(mode))", "\"\(links.contains(item) ? "link" : "timer")\": \(quoted(item))"]
        case .removeMode(let mode, let item):
            ["\"removeMode\": \(quoted(mode))", "\"\(links.contains(item) ? "link" : "timer")\": \(quoted(item))"]
        case .makeCommon(let mode): ["\"makeCommon\": \(quoted(mode))"]
        case .activate(let source): ["\"activate\": \(quoted(source))"]
        case .suspend(let source): ["\"suspend\": \(quoted(source))"]
        case .resume(let item): ["\"resume\": \(quoted(item))"]
        case .pause(let item): ["\"pause\": \(quoted(item))"]
        case .cancel(let item): ["\"cancel\": \(quoted(item))"]
        }
    }

    private static func object(_ fields: [String]) -> String {
        "{ " + fields.joined(separator: ", ") + " }"
    }

    private static func lines(_ objects: [String]) -> String {
        objects.isEmpty ? "[]" : "[\n    " + objects.joined(separator: ",\n    ") + " ]"
    }

    private static func list(_ names: [String]) -> String {
        "[" + names.map(quoted).joined(separator: ", ") + "]"
    }

    private static func quoted(_ name: String) -> String {
        var text = "\""
        for character in name.unicodeScalars {
            if character == "\"" || character == "\\" { text += "\\" }
            text.unicodeScalars.append(character)
        }
        return text + "\""
    }

    /// Returns seconds exact to the nanosecond, which a floating-point number would not be for every time.
    private static func seconds(_ nanoseconds: Int64) -> String {
        let (whole, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        var digits = String(String(rest + 1_000_000_000).dropFirst())
        while digits.count > 1, digits.hasSuffix("0") { digits.removeLast() }
        return "\(whole).\(digits)"
    }
}
