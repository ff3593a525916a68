// The entries of the lists in a scenario.

extension Scenario.TimerEntry {
    init(at value: Located) throws(ScenarioError) {
        let keys = ["name", "first", "interval", "repeats", "modes", "busy", "tolerance", "target"]
        let fields = try Fields(value, keys: keys)
        let name = try fields.required("name").name()
        let repeats = try fields["repeats"]?.flag() ?? false
        let given = try repeats ? fields["interval"]?.repeatingInterval() : fields["interval"]?.time()
        if repeats, given == nil { throw fields.fault("a repeating timer needs an interval") }
        guard let first = try fields["first"]?.time() ?? given else {
            throw fields.fault("a timer needs first or interval")
        }
        self.init(
            name: name, first: first, interval: repeats ? given ?? 0 : 0, repeats: repeats,
            modes: try fields.modes(), busy: try fields["busy"]?.time() ?? 0,
            tolerance: try fields["tolerance"]?.time() ?? 0,
            target: try fields["target"].map(Scenario.Target.init(at:)))
    }
}

extension Scenario.Target {
    init(at value: Located) throws(ScenarioError) {
        let fields = try Fields(value, keys: ["name", "hold"])
        self.init(name: try fields.required("name").name(), hold: try fields["hold"]?.word() ?? .strong)
    }
}

extension Scenario.SourceEntry {
    init(at value: Located) throws(ScenarioError) {
        let keys = ["name", "start", "interval", "leeway", "on", "busy", "active", "cancelAfter", "target"]
        let fields = try Fields(value, keys: keys)
        let name = try fields.required("name").name()
        let interval = try fields["interval"]?.sourceInterval()
        guard let start = try fields["start"]?.time() ?? interval else {
            throw fields.fault("a source needs start or interval")
        }
        self.init(
            name: name, start: start, interval: interval ?? 0, leeway: try fields["leeway"]?.time() ?? 0,
            queue: try fields["on"]?.word() ?? .main, busy: try fields["busy"]?.time() ?? 0,
            isActive: try fields["active"]?.flag() ?? true,
            cancelAfter: try fields["cancelAfter"]?.count(atLeast: 1),
            target: try fields["target"].map(Scenario.Target.init(at:)))
    }
}

extension Scenario.LinkEntry {
    init(at value: Located) throws(ScenarioError) {
        let fields = try Fields(value, keys: ["name", "rate", "preferred", "modes", "busy", "meter"])
        let rate = try fields["rate"]?.count(atLeast: 24) ?? 60
        if rate > 240, let given = fields["rate"] { throw given.fault("must not be more than 240 frames a second") }
        self.init(
            name: try fields.required("name").name(), rate: rate,
            preferred: try fields["preferred"]?.count(atLeast: 0) ?? 0, modes: try fields.modes(),
            busy: try fields["busy"]?.time() ?? 0, hasMeter: try fields["meter"]?.flag() ?? false)
    }
}

extension Scenario.NamedEntry {
    init(at value: Located) throws(ScenarioError) {
        let keys = ["name", "at", "interval", "repeats", "fireInstantly", "on", "action", "busy"]
        let fields = try Fields(value, keys: keys)
        let repeats = try fields["repeats"]?.flag() ?? false
        let given = try fields.required("interval")
        self.init(
            name: try fields.required("name").name(), at: try fields["at"]?.time() ?? 0,
            interval: try repeats ? given.sourceInterval() : given.time(), repeats: repeats,
            fireInstantly: try fields["fireInstantly"]?.flag() ?? false,
            queue: try fields["on"]?.word() ?? .background, action: try fields["action"]?.name(),
            busy: try fields["busy"]?.time() ?? 0)
    }
}

extension Scenario.CountdownEntry {
    init(at value: Located) throws(ScenarioError) {
        let fields = try Fields(value, keys: ["name", "from", "interval", "pausing"])
        self.init(
            name: try fields.required("name").name(), from: try fields["from"]?.count(atLeast: 1),
            interval: try fields["interval"]?.sourceInterval() ?? 1_000_000_000,
            pausing: try fields["pausing"]?.word() ?? .restarting)
    }
}

extension Scenario.BusyEntry {
    init(at value: Located) throws(ScenarioError) {
        let fields = try Fields(value, keys: ["at", "for", "modes"])
        self.init(
            at: try fields.required("at").time(), duration: try fields.required("for").time(),
            modes: try fields.modes())
    }
}

extension Scenario.RunEntry {
    init(at value: Located) throws(ScenarioError) {
        let fields = try Fields(value, keys: ["mode", "from", "until"])
        self.init(
            mode: try ownMode(fields.required("mode")), from: try fields.required("from").time(),
            until: try fields.required("until").time())
    }
}

extension Scenario.ActionEntry {
    private static let verbs = [
        "invalidate", "fire", "setFireDate", "drop", "addMode", "removeMode", "makeCommon", "activate", "suspend",
        "resume", "pause", "cancel",
    ]

    init(at value: Located) throws(ScenarioError) {
        let fields = try Fields(value, keys: ["at"] + Self.verbs + ["to", "timer", "link"])
        self.init(at: try fields.required("at").time(), verb: try Self.verb(fields))
    }

    private static func verb(_ fields: Fields) throws(ScenarioError) -> Verb {
        let given = verbs.filter { fields[$0] != nil }
        guard given.count == 1, let verb = given.first, let object = fields[verb] else {
            let found = given.isEmpty ? "none" : given.joined(separator: " and ")
            throw fields.fault("expected exactly one of \(verbs.joined(separator: ", ")); found \(found)")
        }
        if let to = fields["to"], verb != "setFireDate" { throw to.fault("belongs to setFireDate only") }
        if let item = fields["timer"] ?? fields["link"], verb != "addMode", verb != "removeMode" {
            throw item.fault("belongs to addMode and removeMode only")
        }
        switch verb {
        case "invalidate": return .invalidate(item: try object.name())
        case "fire": return .fire(timer: try object.name())
        case "setFireDate": return .setFireDate(timer: try object.name(), to: try fields.required("to").time())
        case "drop": return .drop(target: try object.name())
        case "addMode": return .addMode(try object.name(), item: try item(fields))
        case "removeMode": return .removeMode(try object.name(), item: try item(fields))
        case "activate": return .activate(source: try object.name())
        case "suspend": return .suspend(source: try object.name())
        case "resume": return .resume(item: try object.name())
        case "pause": return .pause(item: try object.name())
        case "cancel": return .cancel(item: try object.name())
        default: return .makeCommon(try ownMode(object))
        }
    }

    /// Returns the timer or the link whose modes change.
    private static func item(_ fields: Fields) throws(ScenarioError) -> String {
        guard let link = fields["link"] else { return try fields.required("timer").name() }
        if fields["timer"] != nil { throw fields.fault("expected either timer or link, found both") }
        return try link.name()
    }
}
