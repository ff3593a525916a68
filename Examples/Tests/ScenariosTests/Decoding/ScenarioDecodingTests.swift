import Testing

@testable import Scenarios

@Suite("Reading a scenario")
struct ScenarioDecodingTests {
    // MARK: Valid input

    @Test("everything that the format has is read")
    func everything() throws {
        let scenario = try read(
            """
            { "duration": 12.0,
              "commonModes": ["tracking"],
              "timers": [ { "name": "T", "first": 2.0, "interval": 2.0, "repeats": true, "modes": ["default"],
                            "busy": 0.25, "tolerance": 0.5, "target": { "name": "owner", "hold": "weak" } } ],
              "busy":  [ { "at": 5.0, "for": 5.0, "modes": ["common"] } ],
              "runs":  [ { "mode": "tracking", "from": 5.085, "until": 9.596 } ],
              "actions": [ { "at": 3.0, "invalidate": "T" }, { "at": 3.0, "fire": "T" },
                           { "at": 3.0, "setFireDate": "T", "to": 4.5 }, { "at": 3.0, "drop": "owner" },
                           { "at": 3.0, "addMode": "common", "timer": "T" },
                           { "at": 3.0, "removeMode": "default", "timer": "T" },
                           { "at": 3.0, "makeCommon": "modal" } ] }
            """)
        let second: Int64 = 1_000_000_000
        let verbs: [Scenario.ActionEntry.Verb] = [
            .invalidate(item: "T"), .fire(timer: "T"), .setFireDate(timer: "T", to: 4_500_000_000),
            .drop(target: "owner"), .addMode("common", item: "T"), .removeMode("default", item: "T"),
            .makeCommon("modal"),
        ]
        let timer = Scenario.TimerEntry(
            name: "T", first: 2 * second, interval: 2 * second, repeats: true, modes: ["default"], busy: 250_000_000,
            tolerance: 500_000_000, target: Scenario.Target(name: "owner", hold: .weak))
        let expected = Scenario(
            duration: 12 * second, commonModes: ["tracking"], timers: [timer],
            busy: [Scenario.BusyEntry(at: 5 * second, duration: 5 * second, modes: ["common"])],
            runs: [Scenario.RunEntry(mode: "tracking", from: 5_085_000_000, until: 9_596_000_000)],
            actions: verbs.map { Scenario.ActionEntry(at: 3 * second, verb: $0) })
        #expect(scenario == expected)
    }

    @Test("only the duration is required")
    func onlyDuration() throws {
        #expect(try read(#"{"duration": 0}"#) == Scenario(duration: 0))
    }

    @Test("omitted keys have their defaults")
    func defaults() throws {
        let scenario = try read(
            #"{"duration":1,"timers":[{"name":"T","first":1,"target":{"name":"o"}}],"busy":[{"at":1,"for":2}]}"#)
        let target = Scenario.Target(name: "o", hold: .strong)
        #expect(scenario.timers == [Scenario.TimerEntry(name: "T", first: 1_000_000_000, target: target)])
        #expect(scenario.busy == [Scenario.BusyEntry(at: 1_000_000_000, duration: 2_000_000_000)])
    }

    @Test("the interval of a one-shot only supplies its first date")
    func oneShotInterval() throws {
        let timers = try read(
            #"{"duration":1,"timers":[{"name":"T","interval":2},{"name":"U","interval":2,"first":1}]}"#
        ).timers
        #expect(timers.map(\.first) == [2_000_000_000, 1_000_000_000])
        #expect(timers.map(\.interval) == [0, 0])
    }

    @Test("a timer and a target may have the same name")
    func sameNameOfTimerAndTarget() throws {
        #expect(try read(#"{"duration":1,"timers":[{"name":"T","first":1,"target":{"name":"T"}}]}"#).timers.count == 1)
    }

    @Test("a run may end before it begins")
    func runIntoThePast() throws {
        #expect(try read(#"{"duration":1,"runs":[{"mode":"m","from":2,"until":1}]}"#).runs.count == 1)
    }

    // MARK: Malformed input

    @Test("a misspelt key is named, with those that are known")
    func misspeltKey() {
        #expect(
            fault(#"{"duration":1,"timers":[{"name":"T","intervall":2}]}"#)
                == "timers[0]: unknown key \"intervall\"; "
                + "the keys here are name, first, interval, repeats, modes, busy, tolerance, target")
        #expect(
            fault(#"{"duration":1,"zzz":2,"a\nb":1}"#)
                == "top level: unknown key \"a\\nb\"; "
                + "the keys here are duration, commonModes, timers, sources, links, named, countdowns, busy, runs, actions"
        )
    }

    @Test("a value that does not fit is named by its path", arguments: Malformed.values)
    func values(_ members: String, _ expected: String) {
        #expect(fault("{\(members)}") == expected)
    }

    @Test("a timer that does not fit is named by its path", arguments: Malformed.timers)
    func timers(_ timers: String, _ expected: String) {
        #expect(fault(#"{"duration":1,"timers":[\#(timers)]}"#) == expected)
    }

    @Test("an action that does not fit is named by its path", arguments: Malformed.actions)
    func actions(_ action: String, _ expected: String) {
        let timer = #"{"name":"T","first":1,"target":{"name":"owner"}}"#
        #expect(fault(#"{"duration":1,"timers":[\#(timer)],"actions":[{\#(action)}]}"#) == expected)
    }
}

/// Inputs, and their errors.
private enum Malformed {
    static let values = [
        ("", "top level: the key \"duration\" is missing"),
        (#""duration":"1""#, "duration: expected a number, found a string"),
        (#""duration":true"#, "duration: expected a number, found true"),
        (#""duration":null"#, "duration: expected a number, found null"),
        (#""duration":-1e-9"#, "duration: must not be negative"),
        (#""duration":-1e-20"#, "duration: must not be negative"),
        (#""duration":6311520001"#, "duration: must not be more than 6311520000 seconds (200 years)"),
        (#""duration":1e30"#, "duration: must not be more than 6311520000 seconds (200 years)"),
        (#""duration":1e999"#, "duration: the number is out of range"),
        (#""duration":1,"timers":{}"#, "timers: expected an array, found an object"),
        (#""duration":1,"commonModes":["common"]"#, "commonModes[0]: \"common\" is not a mode of its own"),
        (#""duration":1,"commonModes":["a",""]"#, "commonModes[1]: must not be empty"),
        (#""duration":1,"busy":[{"for":1}]"#, "busy[0]: the key \"at\" is missing"),
        (#""duration":1,"busy":[{"at":1}]"#, "busy[0]: the key \"for\" is missing"),
        (#""duration":1,"busy":[{"at":1,"for":-1}]"#, "busy[0].for: must not be negative"),
        (#""duration":1,"runs":[{"mode":"m","from":1}]"#, "runs[0]: the key \"until\" is missing"),
        (#""duration":1,"runs":[{"mode":"m","until":1}]"#, "runs[0]: the key \"from\" is missing"),
        (#""duration":1,"runs":[{"from":0,"until":1}]"#, "runs[0]: the key \"mode\" is missing"),
        (
            #""duration":1,"runs":[{"mode":"common","from":0,"until":1}]"#,
            "runs[0].mode: \"common\" is not a mode of its own"
        ),
        (#""duration":1,"runs":[7]"#, "runs[0]: expected an object, found a number"),
    ]

    static let timers = [
        (#"{"first":1}"#, "timers[0]: the key \"name\" is missing"),
        (#"{"name":"","first":1}"#, "timers[0].name: must not be empty"),
        (#"{"name":1,"first":1}"#, "timers[0].name: expected a string, found a number"),
        (#"{"name":"T"}"#, "timers[0]: a timer needs first or interval"),
        (#"{"name":"T","first":1,"repeats":true}"#, "timers[0]: a repeating timer needs an interval"),
        (#"{"name":"T","first":-1}"#, "timers[0].first: must not be negative"),
        (#"{"name":"T","interval":-1}"#, "timers[0].interval: must not be negative"),
        (#"{"name":"T","interval":[]}"#, "timers[0].interval: expected a number, found an array"),
        (#"{"name":"T","first":1,"repeats":1}"#, "timers[0].repeats: expected true or false, found a number"),
        (#"{"name":"T","first":1,"busy":-1}"#, "timers[0].busy: must not be negative"),
        (#"{"name":"T","first":1,"tolerance":false}"#, "timers[0].tolerance: expected a number, found false"),
        (#"{"name":"T","first":1,"modes":"default"}"#, "timers[0].modes: expected an array, found a string"),
        (#"{"name":"T","first":1,"modes":[""]}"#, "timers[0].modes[0]: must not be empty"),
        (#"{"name":"T","first":1,"target":{}}"#, "timers[0].target: the key \"name\" is missing"),
        (#"{"name":"T","first":1,"target":{"name":""}}"#, "timers[0].target.name: must not be empty"),
        (
            #"{"name":"T","first":1,"target":{"name":"o","hold":"soft"}}"#,
            "timers[0].target.hold: expected \"strong\" or \"weak\""
        ),
        (
            #"{"name":"T","first":1},{"name":"U","first":1},{"name":"T","first":1}"#,
            "timers[2].name: \"T\" is the name of timers[0] already"
        ),
        (
            #"{"name":"T","first":1,"target":{"name":"o"}},{"name":"U","first":1,"target":{"name":"o"}}"#,
            "timers[1].target.name: \"o\" is the target of timers[0] already"
        ),
    ]

    private static let verbs =
        "invalidate, fire, setFireDate, drop, addMode, removeMode, makeCommon, activate, suspend, resume, pause, cancel"

    static let actions = [
        (#""fire":"T""#, "actions[0]: the key \"at\" is missing"),
        (#""at":-1,"fire":"T""#, "actions[0].at: must not be negative"),
        (#""at":1"#, "actions[0]: expected exactly one of \(verbs); found none"),
        (
            #""at":1,"drop":"owner","fire":"T""#,
            "actions[0]: expected exactly one of \(verbs); found fire and drop"
        ),
        (#""at":1,"fire":"U""#, "actions[0].fire: there is no timer \"U\""),
        (#""at":1,"fire":"owner""#, "actions[0].fire: there is no timer \"owner\""),
        (#""at":1,"invalidate":"U""#, "actions[0].invalidate: there is no timer or link \"U\""),
        (#""at":1,"drop":"T""#, "actions[0].drop: there is no target \"T\""),
        (#""at":1,"setFireDate":"U","to":1"#, "actions[0].setFireDate: there is no timer \"U\""),
        (#""at":1,"setFireDate":"T""#, "actions[0]: the key \"to\" is missing"),
        (#""at":1,"setFireDate":"T","to":-1"#, "actions[0].to: must not be negative"),
        (#""at":1,"fire":"T","to":1"#, "actions[0].to: belongs to setFireDate only"),
        (#""at":1,"addMode":"m""#, "actions[0]: the key \"timer\" is missing"),
        (#""at":1,"removeMode":"m""#, "actions[0]: the key \"timer\" is missing"),
        (#""at":1,"addMode":"m","timer":"U""#, "actions[0].addMode: there is no timer or link \"U\""),
        (#""at":1,"addMode":"","timer":"T""#, "actions[0].addMode: must not be empty"),
        (#""at":1,"fire":"T","timer":"T""#, "actions[0].timer: belongs to addMode and removeMode only"),
        (#""at":1,"makeCommon":"common""#, "actions[0].makeCommon: \"common\" is not a mode of its own"),
        (#""at":1,"makeCommon":"""#, "actions[0].makeCommon: must not be empty"),
    ]
}
