import Testing

@testable import Scenarios

@Suite("Printing sources, links, named timers and countdowns, and several threads")
struct ScenarioThreadsOutputTests {
    @Test("each event is one line with its keys in order", arguments: Sample.lines)
    func lines(event: ScenarioEvent, line: String) {
        #expect(event.json == line)
    }

    @Test("each event in words", arguments: Sample.words)
    func words(event: ScenarioEvent, words: String) {
        #expect(event.words == words)
    }

    // MARK: The chart

    @Test("each thread has its lanes in the chart, below its name and its busy work")
    func chart() {
        // The handlers of the background do not make the main loop busy. A mark is on the first lane of its source.
        #expect(
            TextChart(scenario: Sample.scenario, events: Sample.events).rows(width: 80).prefix(9) == [
                "  mode          default",
                "  busy                               █████████████████████████████",
                "  S                           ●              ○             ·      ▲",
                "  L                                  ●····························●",
                "  C                                                                  ●",
                "  background-1  ╌╌╌╌╌╌╌╌╌╌╌╌╌╌███████╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌",
                "  B                           ●                 ✕",
                "  background-2  ╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌███████╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌",
                "  B                                          ●",
            ])
    }

    @Test("the list below the chart names data, dropped frames, and the threads other than the main one")
    func list() {
        let chart = TextChart(scenario: Sample.scenario, events: Sample.events).render(width: 80)
        let lines = chart.split(separator: "\n")
        #expect(lines.contains("  +7.000  S fires, no. 2, due +4.000, data 2   (default)"))
        #expect(lines.contains("  +7.020  L is called, no. 2, 101 dropped      (default)"))
        #expect(lines.contains("  +2.000  B fires, no. 1   on background-1"))
        #expect(lines.contains("  +4.500  B is cancelled   on background-2"))
        #expect(lines.contains("  +7.020  L shows 2 FPS"))
        #expect(lines.contains("  +7.500  C ticks (1), 3 left                  (default)"))
        #expect(!chart.contains("on main"))
    }

    // MARK: The picture

    @Test("each thread has its lanes in the picture")
    func picture() {
        let svg = SVGChart(scenario: Sample.scenario, events: Sample.events).render()
        for text in ["main, mode", "thread", "background-1", "background-2", "S", "L", "C", "B", "busy"] {
            #expect(svg.contains(">\(text)</text>"), "\(text)")
        }
        #expect(svg.split(separator: ">thread</text>", omittingEmptySubsequences: false).count == 3)
        #expect(svg.split(separator: ">B</text>", omittingEmptySubsequences: false).count == 3)
        #expect(svg.contains(">source, every 2 s</text>"))
        #expect(svg.contains(">link, 25 Hz, default</text>"))
        #expect(svg.contains(">countdown, every 1 s</text>"))
        #expect(svg.contains(">due, missed</text>"))
        #expect(svg.contains(">3 s late</text>"))
        #expect(svg.contains(">invalidated or cancelled</text>"))
    }

    @Test("a scenario of one thread has no thread names in its pictures")
    func oneThread() {
        let scenario = Scenario(duration: 2, sources: [Scenario.SourceEntry(name: "S", start: 1)])
        let events = ScenarioPlayer(scenario).play()
        #expect(events.allSatisfy { $0.thread == "main" })
        let svg = SVGChart(scenario: scenario, events: events).render()
        #expect(!svg.contains(">thread</text>") && svg.contains(">mode</text>"))
        #expect(!TextChart(scenario: scenario, events: events).render().contains("on main"))
    }

    @Test("dropped frames stand where the turns were, those of data between the date and the delivery")
    func points() {
        let chart = Chart(scenario: Sample.scenario, events: Sample.events)
        #expect(chart.threads.map(\.name) == ["main", "background-1", "background-2"])
        let source = chart.main.lanes[0]
        #expect(source.missed.flatMap { Array($0.thinned(to: 1)) } == [6 * Sample.second])
        let link = chart.main.lanes[1]
        #expect(link.missed.map(\.count) == [101])
        #expect(link.missed.map(\.first) == [3 * Sample.second])
        #expect(chart.others.map { $0.lanes.map(\.fires.count) } == [[1], [1]])
        #expect(chart.others.map(\.busy.count) == [1, 1])
    }
}

private enum Sample {
    static let second: Int64 = 1_000_000_000

    private static func delivery(
        _ name: String, _ t: Int64, due: Int64, count: Int, mode: String? = "default", data: Int64 = 1,
        on thread: String = "main"
    ) -> ScenarioEvent {
        ScenarioEvent(t: t, .delivery(name: name, count: count, mode: mode, due: due, data: data), thread: thread)
    }

    static let scenario = Scenario(
        duration: 8 * second,
        sources: [
            Scenario.SourceEntry(name: "S", start: 2 * second, interval: 2 * second),
            Scenario.SourceEntry(name: "B", start: 2 * second, interval: 2 * second, queue: .background, busy: second),
        ],
        links: [Scenario.LinkEntry(name: "L", rate: 50, preferred: 25)],
        countdowns: [Scenario.CountdownEntry(name: "C", from: 3)],
        busy: [Scenario.BusyEntry(at: 3 * second, duration: 4 * second)])

    static let events = [
        delivery("S", 2 * second, due: 2 * second, count: 1),
        delivery("B", 2 * second, due: 2 * second, count: 1, mode: nil, on: "background-1"),
        frame(2_960_000_000, count: 1, dropped: 0),
        ScenarioEvent(t: 3 * second, .busyBegin, thread: "main"),
        delivery("B", 4 * second, due: 4 * second, count: 2, mode: nil, on: "background-2"),
        ScenarioEvent(t: 4_500_000_000, .cancelled(name: "B"), thread: "background-2"),
        ScenarioEvent(t: 7 * second, .busyEnd, thread: "main"),
        delivery("S", 7 * second, due: 4 * second, count: 2, data: 2), frame(7_020_000_000, count: 2, dropped: 101),
        ScenarioEvent(t: 7_020_000_000, .reading(name: "L", text: "2 FPS"), thread: "main"),
        ScenarioEvent(t: 7_500_000_000, .tick(name: "C", count: 1, mode: "default", remaining: 3), thread: "main"),
        ScenarioEvent(t: 8 * second, .end, thread: "main"),
    ]

    private static func frame(_ t: Int64, count: Int, dropped: Int64) -> ScenarioEvent {
        ScenarioEvent(
            t: t, .frame(name: "L", count: count, mode: "default", timestamp: t, dropped: dropped), thread: "main")
    }

    private static let action = ScenarioEvent.Kind.action(
        name: "N", count: 1, mode: nil, action: "the \"second\"", isFree: true)

    static let lines: [(ScenarioEvent, String)] = [
        (
            delivery("S", 6 * second, due: 4 * second, count: 2, data: 2),
            #"{"t":6.0,"event":"fire","name":"S","count":2,"mode":"default","due":4.0,"data":2,"thread":"main"}"#
        ),
        (
            delivery("B", 1, due: 1, count: 1, mode: nil, on: "background-1"),
            #"{"t":0.000000001,"event":"fire","name":"B","count":1,"due":0.000000001,"data":1,"#
                + #""thread":"background-1"}"#
        ),
        (
            ScenarioEvent(
                t: 100_000_001, .frame(name: "L", count: 3, mode: "m", timestamp: 100_000_000, dropped: 2),
                thread: "main"),
            #"{"t":0.100000001,"event":"fire","name":"L","count":3,"mode":"m","timestamp":0.1,"dropped":2,"#
                + #""thread":"main"}"#
        ),
        (
            ScenarioEvent(t: 3 * second, action, thread: "background-1"),
            #"{"t":3.0,"event":"fire","name":"N","count":1,"action":"the \"second\"","free":true,"#
                + #""thread":"background-1"}"#
        ),
        (
            ScenarioEvent(
                t: 0, .action(name: "N", count: 2, mode: "default", action: "N", isFree: false), thread: "main"),
            #"{"t":0.0,"event":"fire","name":"N","count":2,"mode":"default","action":"N","thread":"main"}"#
        ),
        (
            ScenarioEvent(t: second, .tick(name: "C", count: 2, mode: "default", remaining: 59), thread: "main"),
            #"{"t":1.0,"event":"fire","name":"C","count":2,"mode":"default","remaining":59,"thread":"main"}"#
        ),
        (
            ScenarioEvent(t: second, .tick(name: "C", count: 2, mode: "default", remaining: nil), thread: "main"),
            #"{"t":1.0,"event":"fire","name":"C","count":2,"mode":"default","thread":"main"}"#
        ),
        (
            ScenarioEvent(t: 1_016_666_666, .reading(name: "L", text: "60 FPS"), thread: "main"),
            #"{"t":1.016666666,"event":"reading","name":"L","text":"60 FPS","thread":"main"}"#
        ),
        (
            ScenarioEvent(t: 0, .cancelled(name: "S"), thread: "background-2"),
            #"{"t":0.0,"event":"cancelled","name":"S","thread":"background-2"}"#
        ),
        (ScenarioEvent(t: 0, .end, thread: "main"), #"{"t":0.0,"event":"end","thread":"main"}"#),
    ]

    static let words: [(ScenarioEvent, String)] = [
        (events[0], "S fires (1)"), (events[1], "B fires (1) in the background"),
        (events[5], "B is cancelled in the background"), (events[7], "S fires (2), due +4.0, data 2"),
        (events[8], "L is called (2), 101 dropped"), (events[9], "L shows 2 FPS"), (events[10], "C ticks (1), 3 left"),
        (
            ScenarioEvent(t: 0, action, thread: "background-1"),
            #"N acts in the background: the \"second\"; the name is free"#
        ),
        (ScenarioEvent(t: 0, action, thread: "main"), #"N acts: the \"second\"; the name is free"#),
    ]
}
