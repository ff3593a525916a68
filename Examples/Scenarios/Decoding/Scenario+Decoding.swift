internal import RunLoopKit

extension Scenario {
    /// Creates a scenario from the text of a JSON file.
    package init(json: [UInt8]) throws(ScenarioError) {
        var pieces = [json, []].makeIterator()
        var parser = JSONParser { pieces.next()! }
        try self.init(parser.onlyValue())
    }

    /// Creates a scenario. Nothing is ignored or guessed: an unknown key, an unknown name and a time before the start
    /// are errors that name the place.
    init(_ value: JSONValue) throws(ScenarioError) {
        let keys = [
            "duration", "commonModes", "timers", "sources", "links", "named", "countdowns", "busy", "runs", "actions",
        ]
        let fields = try Fields(Located(place: "", value: value), keys: keys)
        self.init(
            duration: try fields.required("duration").time(),
            commonModes: try fields.elements("commonModes").map(ownMode),
            timers: try fields.elements("timers").map(TimerEntry.init(at:)),
            sources: try fields.elements("sources").map(SourceEntry.init(at:)),
            links: try fields.elements("links").map(LinkEntry.init(at:)),
            named: try fields.elements("named").map(NamedEntry.init(at:)),
            countdowns: try fields.elements("countdowns").map(CountdownEntry.init(at:)),
            busy: try fields.elements("busy").map(BusyEntry.init(at:)),
            runs: try fields.elements("runs").map(RunEntry.init(at:)),
            actions: try fields.elements("actions").map(ActionEntry.init(at:)))
        try checkNamesAreUnique()
        try checkActionsNameSomething()
    }

    /// Checks that names are unique among all entries that have one; but a named timer may be scheduled several times.
    private func checkNamesAreUnique() throws(ScenarioError) {
        var placeOf: [String: String] = [:]
        func check(_ names: [String], _ list: String) throws(ScenarioError) {
            for (index, name) in names.enumerated() {
                let place = "\(list)[\(index)]"
                guard let other = placeOf.updateValue(place, forKey: name) else { continue }
                throw ScenarioError("\(place).name", "\(quoted(name)) is the name of \(other) already")
            }
        }
        try check(timers.map(\.name), "timers")
        try check(sources.map(\.name), "sources")
        try check(links.map(\.name), "links")
        try check(countdowns.map(\.name), "countdowns")
        for (index, entry) in named.enumerated() {
            guard let other = placeOf[entry.name] else { continue }
            throw ScenarioError("named[\(index)].name", "\(quoted(entry.name)) is the name of \(other) already")
        }
        try checkTargetsAreUnique()
    }

    private func checkTargetsAreUnique() throws(ScenarioError) {
        var ownerOf: [String: String] = [:]
        func check(_ targets: [Target?], _ list: String) throws(ScenarioError) {
            for case (let index, let target?) in targets.enumerated() {
                let place = "\(list)[\(index)]"
                guard let other = ownerOf.updateValue(place, forKey: target.name) else { continue }
                throw ScenarioError("\(place).target.name", "\(quoted(target.name)) is the target of \(other) already")
            }
        }
        try check(timers.map(\.target), "timers")
        try check(sources.map(\.target), "sources")
    }

    private func checkActionsNameSomething() throws(ScenarioError) {
        let timerNames = timers.map(\.name)
        let (sourceNames, linkNames) = (sources.map(\.name), links.map(\.name))
        let targetNames = timers.compactMap(\.target?.name) + sources.compactMap(\.target?.name)
        for (index, action) in actions.enumerated() {
            func check(_ name: String, _ key: String, _ thing: String, _ names: [String]...) throws(ScenarioError) {
                guard !names.contains(where: { $0.contains(name) }) else { return }
                throw ScenarioError("actions[\(index)].\(key)", "there is no \(thing) \(quoted(name))")
            }
            switch action.verb {
            case .invalidate(let name): try check(name, "invalidate", "timer or link", timerNames, linkNames)
            case .fire(let name): try check(name, "fire", "timer", timerNames)
            case .setFireDate(let name, _): try check(name, "setFireDate", "timer", timerNames)
            case .addMode(_, let name): try check(name, "addMode", "timer or link", timerNames, linkNames)
            case .removeMode(_, let name): try check(name, "removeMode", "timer or link", timerNames, linkNames)
            case .drop(let name): try check(name, "drop", "target", targetNames)
            case .activate(let name): try check(name, "activate", "source", sourceNames)
            case .suspend(let name): try check(name, "suspend", "source", sourceNames)
            case .resume(let name):
                try check(name, "resume", "source, link or countdown", sourceNames, linkNames, countdowns.map(\.name))
            case .pause(let name): try check(name, "pause", "link or countdown", linkNames, countdowns.map(\.name))
            case .cancel(let name): try check(name, "cancel", "source or named timer", sourceNames, named.map(\.name))
            case .makeCommon: break
            }
        }
    }
}
