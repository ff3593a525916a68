import Testing

@testable import Scenarios

@Suite("Reading the lists of sources, links, named timers and countdowns")
struct ScenarioListsDecodingTests {
    // MARK: Valid input

    @Test("everything that the lists have is read")
    func everything() throws {
        let scenario = try read(
            """
            { "duration": 12.0,
              "sources": [ { "name": "S", "start": 1.5, "interval": 2.0, "leeway": 0.1, "on": "background",
                             "busy": 0.25, "active": false, "cancelAfter": 6,
                             "target": { "name": "owner", "hold": "weak" } } ],
              "links": [ { "name": "L", "rate": 120, "preferred": 30, "modes": ["common", "modal"], "busy": 0.01,
                           "meter": true } ],
              "named": [ { "at": 1.0, "name": "N", "interval": 2.0, "repeats": true, "fireInstantly": true,
                           "on": "main", "action": "second", "busy": 0.5 } ],
              "countdowns": [ { "name": "C", "from": 60, "interval": 0.5, "pausing": "continuing" } ] }
            """)
        let second: Int64 = 1_000_000_000
        let source = Scenario.SourceEntry(
            name: "S", start: 1_500_000_000, interval: 2 * second, leeway: 100_000_000, queue: .background,
            busy: 250_000_000, isActive: false, cancelAfter: 6,
            target: Scenario.Target(name: "owner", hold: .weak))
        let link = Scenario.LinkEntry(
            name: "L", rate: 120, preferred: 30, modes: ["common", "modal"], busy: 10_000_000, hasMeter: true)
        let named = Scenario.NamedEntry(
            name: "N", at: second, interval: 2 * second, repeats: true, fireInstantly: true, queue: .main,
            action: "second", busy: 500_000_000)
        let countdown = Scenario.CountdownEntry(name: "C", from: 60, interval: 500_000_000, pausing: .continuing)
        #expect(
            scenario
                == Scenario(
                    duration: 12 * second, sources: [source], links: [link], named: [named], countdowns: [countdown]))
    }

    @Test("every verb of the lists is read")
    func verbs() throws {
        let lists = #""sources":[{"name":"S","start":1}],"links":[{"name":"L"}],"countdowns":[{"name":"C"}]"#
        let scenario = try read(
            """
            { "duration": 1, \(lists), "named": [ { "name": "N", "interval": 1 } ],
              "actions": [ { "at": 0, "activate": "S" }, { "at": 0, "suspend": "S" }, { "at": 0, "resume": "S" },
                           { "at": 0, "resume": "L" }, { "at": 0, "resume": "C" }, { "at": 0, "pause": "L" },
                           { "at": 0, "pause": "C" }, { "at": 0, "cancel": "S" }, { "at": 0, "cancel": "N" },
                           { "at": 0, "invalidate": "L" }, { "at": 0, "addMode": "m", "link": "L" },
                           { "at": 0, "removeMode": "common", "link": "L" } ] }
            """)
        let verbs: [Scenario.ActionEntry.Verb] = [
            .activate(source: "S"), .suspend(source: "S"), .resume(item: "S"), .resume(item: "L"), .resume(item: "C"),
            .pause(item: "L"), .pause(item: "C"), .cancel(item: "S"), .cancel(item: "N"), .invalidate(item: "L"),
            .addMode("m", item: "L"), .removeMode("common", item: "L"),
        ]
        #expect(scenario.actions == verbs.map { Scenario.ActionEntry(at: 0, verb: $0) })
    }

    @Test("omitted keys have their defaults")
    func defaults() throws {
        let scenario = try read(
            """
            { "duration": 1, "sources": [ { "name": "S", "start": 1 }, { "name": "R", "interval": 2 } ],
              "links": [ { "name": "L" } ], "named": [ { "name": "N", "interval": 0 } ],
              "countdowns": [ { "name": "C" } ] }
            """)
        #expect(
            scenario.sources == [
                Scenario.SourceEntry(name: "S", start: 1_000_000_000),
                Scenario.SourceEntry(name: "R", start: 2_000_000_000, interval: 2_000_000_000),
            ])
        #expect(scenario.sources[0].queue == .main && scenario.sources[0].isActive)
        #expect(scenario.links == [Scenario.LinkEntry(name: "L", rate: 60, preferred: 0, modes: ["default"])])
        #expect(!scenario.links[0].hasMeter)
        let named = Scenario.NamedEntry(name: "N", interval: 0, queue: .background, action: "N")
        #expect(scenario.named == [named] && !named.repeats && !named.fireInstantly && named.at == 0)
        #expect(
            scenario.countdowns
                == [Scenario.CountdownEntry(name: "C", interval: 1_000_000_000, pausing: .restarting)])
        #expect(scenario.countdowns[0].from == nil)
    }

    @Test("a name may be scheduled several times")
    func nameAgain() throws {
        let scenario = try read(#"{"duration":1,"named":[{"name":"N","interval":1},{"name":"N","interval":2}]}"#)
        #expect(scenario.named.map(\.interval) == [1_000_000_000, 2_000_000_000])
    }

    // MARK: Malformed input

    @Test("an entry that does not fit is named by its path, in one line", arguments: MalformedLists.entries)
    func entries(_ lists: String, _ expected: String) {
        #expect(fault(#"{"duration":1,\#(lists)}"#) == expected)
    }

    @Test("an action that does not fit is named by its path, in one line", arguments: MalformedLists.actions)
    func actions(_ action: String, _ expected: String) {
        let timer = #""timers":[{"name":"T","first":1}],"sources":[{"name":"S","start":1,"target":{"name":"owner"}}]"#
        let others = #""links":[{"name":"L"}],"named":[{"name":"N","interval":1}],"countdowns":[{"name":"C"}]"#
        #expect(fault(#"{"duration":1,\#(timer),\#(others),"actions":[{"at":0,\#(action)}]}"#) == expected)
    }
}

/// Members of a scenario, and their errors.
private enum MalformedLists {
    static let entries = sources + links + named + countdowns + names

    private static let sources = [
        (#""sources":{}"#, "sources: expected an array, found an object"),
        (#""sources":[1]"#, "sources[0]: expected an object, found a number"),
        (#""sources":[{"start":1}]"#, "sources[0]: the key \"name\" is missing"),
        (#""sources":[{"name":"","start":1}]"#, "sources[0].name: must not be empty"),
        (#""sources":[{"name":"S"}]"#, "sources[0]: a source needs start or interval"),
        (#""sources":[{"name":"S","start":-1}]"#, "sources[0].start: must not be negative"),
        (#""sources":[{"name":"S","interval":0}]"#, "sources[0].interval: must be above zero"),
        (#""sources":[{"name":"S","interval":-1}]"#, "sources[0].interval: must not be negative"),
        (#""sources":[{"name":"S","start":1,"leeway":-1}]"#, "sources[0].leeway: must not be negative"),
        (#""sources":[{"name":"S","start":1,"busy":"1"}]"#, "sources[0].busy: expected a number, found a string"),
        (#""sources":[{"name":"S","start":1,"on":"worker"}]"#, "sources[0].on: expected \"main\" or \"background\""),
        (#""sources":[{"name":"S","start":1,"on":1}]"#, "sources[0].on: expected a string, found a number"),
        (
            #""sources":[{"name":"S","start":1,"active":1}]"#,
            "sources[0].active: expected true or false, found a number"
        ),
        (
            #""sources":[{"name":"S","start":1,"cancelAfter":0}]"#,
            "sources[0].cancelAfter: expected a whole number, at least 1"
        ),
        (
            #""sources":[{"name":"S","start":1,"cancelAfter":1.5}]"#,
            "sources[0].cancelAfter: expected a whole number, at least 1"
        ),
        (#""sources":[{"name":"S","start":1,"target":{}}]"#, "sources[0].target: the key \"name\" is missing"),
        (
            #""sources":[{"name":"S","start":1,"modes":[]}]"#,
            "sources[0]: unknown key \"modes\"; "
                + "the keys here are name, start, interval, leeway, on, busy, active, cancelAfter, target"
        ),
    ]

    private static let links = [
        (#""links":[{}]"#, "links[0]: the key \"name\" is missing"),
        (#""links":[{"name":7}]"#, "links[0].name: expected a string, found a number"),
        (#""links":[{"name":"L","rate":23}]"#, "links[0].rate: expected a whole number, at least 24"),
        (#""links":[{"name":"L","rate":59.94}]"#, "links[0].rate: expected a whole number, at least 24"),
        (#""links":[{"name":"L","rate":241}]"#, "links[0].rate: must not be more than 240 frames a second"),
        (#""links":[{"name":"L","rate":"60"}]"#, "links[0].rate: expected a number, found a string"),
        (#""links":[{"name":"L","preferred":-1}]"#, "links[0].preferred: expected a whole number, at least 0"),
        (#""links":[{"name":"L","modes":[""]}]"#, "links[0].modes[0]: must not be empty"),
        (#""links":[{"name":"L","busy":-1}]"#, "links[0].busy: must not be negative"),
        (#""links":[{"name":"L","meter":"yes"}]"#, "links[0].meter: expected true or false, found a string"),
        (
            #""links":[{"name":"L","interval":1}]"#,
            "links[0]: unknown key \"interval\"; the keys here are name, rate, preferred, modes, busy, meter"
        ),
    ]

    private static let named = [
        (#""named":[{"interval":1}]"#, "named[0]: the key \"name\" is missing"),
        (#""named":[{"name":"N"}]"#, "named[0]: the key \"interval\" is missing"),
        (#""named":[{"name":"N","interval":-1}]"#, "named[0].interval: must not be negative"),
        (#""named":[{"name":"N","interval":0,"repeats":true}]"#, "named[0].interval: must be above zero"),
        (#""named":[{"name":"N","interval":1,"at":-1}]"#, "named[0].at: must not be negative"),
        (
            #""named":[{"name":"N","interval":1,"repeats":0}]"#,
            "named[0].repeats: expected true or false, found a number"
        ),
        (
            #""named":[{"name":"N","interval":1,"fireInstantly":0}]"#,
            "named[0].fireInstantly: expected true or false, found a number"
        ),
        (#""named":[{"name":"N","interval":1,"on":"Main"}]"#, "named[0].on: expected \"main\" or \"background\""),
        (#""named":[{"name":"N","interval":1,"action":""}]"#, "named[0].action: must not be empty"),
        (#""named":[{"name":"N","interval":1,"busy":-1}]"#, "named[0].busy: must not be negative"),
        (
            #""named":[{"name":"N","first":1}]"#,
            "named[0]: unknown key \"first\"; "
                + "the keys here are name, at, interval, repeats, fireInstantly, on, action, busy"
        ),
    ]

    private static let countdowns = [
        (#""countdowns":[{"from":1}]"#, "countdowns[0]: the key \"name\" is missing"),
        (#""countdowns":[{"name":"C","from":0}]"#, "countdowns[0].from: expected a whole number, at least 1"),
        (#""countdowns":[{"name":"C","from":2.5}]"#, "countdowns[0].from: expected a whole number, at least 1"),
        (#""countdowns":[{"name":"C","interval":0}]"#, "countdowns[0].interval: must be above zero"),
        (
            #""countdowns":[{"name":"C","pausing":"never"}]"#,
            "countdowns[0].pausing: expected \"restarting\" or \"continuing\""
        ),
        (
            #""countdowns":[{"name":"C","on":"main"}]"#,
            "countdowns[0]: unknown key \"on\"; the keys here are name, from, interval, pausing"
        ),
    ]

    private static let names = [
        (
            #""timers":[{"name":"X","first":1}],"sources":[{"name":"X","start":1}]"#,
            "sources[0].name: \"X\" is the name of timers[0] already"
        ),
        (
            #""sources":[{"name":"X","start":1}],"links":[{"name":"X"}]"#,
            "links[0].name: \"X\" is the name of sources[0] already"
        ),
        (
            #""links":[{"name":"Y"},{"name":"X"}],"countdowns":[{"name":"X"}]"#,
            "countdowns[0].name: \"X\" is the name of links[1] already"
        ),
        (
            #""countdowns":[{"name":"X"}],"named":[{"name":"N","interval":1},{"name":"X","interval":1}]"#,
            "named[1].name: \"X\" is the name of countdowns[0] already"
        ),
        (
            #""timers":[{"name":"T","first":1,"target":{"name":"o"}}],"#
                + #""sources":[{"name":"S","start":1,"target":{"name":"o"}}]"#,
            "sources[0].target.name: \"o\" is the target of timers[0] already"
        ),
    ]

    static let actions = [
        (#""activate":"T""#, "actions[0].activate: there is no source \"T\""),
        (#""suspend":"L""#, "actions[0].suspend: there is no source \"L\""),
        (#""resume":"N""#, "actions[0].resume: there is no source, link or countdown \"N\""),
        (#""pause":"S""#, "actions[0].pause: there is no link or countdown \"S\""),
        (#""cancel":"L""#, "actions[0].cancel: there is no source or named timer \"L\""),
        (#""invalidate":"S""#, "actions[0].invalidate: there is no timer or link \"S\""),
        (#""fire":"S""#, "actions[0].fire: there is no timer \"S\""),
        (#""setFireDate":"L","to":1"#, "actions[0].setFireDate: there is no timer \"L\""),
        (#""drop":"S""#, "actions[0].drop: there is no target \"S\""),
        (#""addMode":"m","link":"S""#, "actions[0].addMode: there is no timer or link \"S\""),
        (#""removeMode":"m","link":"C""#, "actions[0].removeMode: there is no timer or link \"C\""),
        (#""addMode":"m","timer":"T","link":"L""#, "actions[0]: expected either timer or link, found both"),
        (#""pause":"L","link":"L""#, "actions[0].link: belongs to addMode and removeMode only"),
        (#""cancel":"S","to":1"#, "actions[0].to: belongs to setFireDate only"),
        (#""resume":7"#, "actions[0].resume: expected a string, found a number"),
        (#""pause":"""#, "actions[0].pause: must not be empty"),
    ]
}
