import Testing

@testable import Scenarios

@Suite("Printing what was played")
struct ScenarioOutputTests {
    // MARK: JSON

    @Test("each event is one line with its keys in order", arguments: Sample.lines)
    func lines(event: ScenarioEvent, line: String) {
        #expect(event.json == line)
    }

    @Test(
        "seconds are exact, with at least one decimal and no zeros to spare",
        arguments: [
            (0, "0.0"), (1, "0.000000001"), (2_000_000_000, "2.0"), (5_085_000_000, "5.085"), (100_000_000, "0.1"),
            (10_020_000_000, "10.02"), (123_456_789_123_456_789, "123456789.123456789"), (-1_500_000_000, "-1.5"),
            (.max, "9223372036.854775807"), (.min, "-9223372036.854775808"),
        ] as [(Int64, String)])
    func seconds(nanoseconds: Int64, text: String) {
        #expect(decimalSeconds(nanoseconds) == text)
    }

    @Test("seconds are rounded half up to the decimals asked for")
    func rounded() {
        #expect(roundedSeconds(1_999_500_000, decimals: 3, atLeast: 3) == "2.000")
        #expect(roundedSeconds(1_999_499_999, decimals: 3, atLeast: 3) == "1.999")
        #expect(roundedSeconds(3_596_000_000, decimals: 3, atLeast: 0) == "3.596")
        #expect(roundedSeconds(1, decimals: 9, atLeast: 0) == "0.000000001")
    }

    @Test("quotes, backslashes and control characters in names are escaped, other characters are not")
    func escapes() {
        let event = ScenarioEvent(t: 0, .invalidated(name: "a\"b\\c\n\r\t\u{1}\u{1F}é😀/"))
        #expect(event.json == #"{"t":0.0,"event":"invalidated","name":"a\"b\\c\n\r\t\u0001\u001fé😀/"}"#)
    }

    // MARK: The chart

    @Test("the chart of X5 shows what is late, what is missed, and the mode above it")
    func chartOfX5() {
        let lines = TextChart(scenario: Sample.x5, events: Sample.x5Events).render(width: 80).split(separator: "\n")
        #expect(
            lines.prefix(4) == [
                // Five columns a second.
                "  mode  default                  ░ tracking ░░░░░░░░░░░░",
                "  T               ●         ●         ○         ·       ▲ ●         ●",
                "        ┬─────────┬─────────┬─────────┬─────────┬─────────┬─────────┬─────",
                "  s     0         2         4         6         8        10        12",
            ])
        #expect(lines.contains("   +9.596  T fires, no. 3, due +6.000, 1 missed   (default)"))
        #expect(lines.contains("   +5.085  tracking begins"))
        #expect(lines.contains("  +10.000  T fires, no. 4                         (default)"))
    }

    @Test("no row of the chart is wider than asked for", arguments: [40, 60, 100, 200])
    func width(_ width: Int) {
        let rows = TextChart(scenario: Sample.crowded, events: Sample.crowdedEvents).render(width: width)
            .split(separator: "\n", omittingEmptySubsequences: false).prefix { !$0.isEmpty }
        #expect(rows.count == 8)
        #expect(rows.allSatisfy { $0.count <= width })
    }

    @Test("busy work, nested runs, fires by hand and the ends of timers and targets are in the chart")
    func crowdedChart() {
        let chart = TextChart(scenario: Sample.crowded, events: Sample.crowdedEvents).render()
        let rows = chart.split(separator: "\n")
        #expect(rows[0].hasPrefix("  mode  ") && rows[0].contains("default") && rows[0].contains("░ tracking ░"))
        #expect(rows[1].contains("░ modal ░"))
        #expect(rows.first { $0.hasPrefix("  busy") }?.contains("████") == true)
        #expect(rows.first { $0.hasPrefix("  once") }?.contains("●†✕") == true)
        #expect(rows.first { $0.hasPrefix("  U ") }?.contains("◆") == true)
        #expect(chart.contains("U fires by hand, no. 1, due +4.000"))
        #expect(chart.contains("owner deinits"))
    }

    @Test("a timer that starves to the end shows the points that nothing tells of")
    func starvedToTheEnd() {
        let timer = Scenario.TimerEntry(name: "T", first: 1, interval: 1, repeats: true, modes: ["modal"])
        let scenario = Scenario(duration: 5, timers: [timer])
        let chart = TextChart(scenario: scenario, events: [ScenarioEvent(t: 5, .end)]).render()
        #expect(chart.split(separator: "\n").first { $0.hasPrefix("  T") }?.count { $0 == "·" } == 5)
        let svg = SVGChart(scenario: scenario, events: [ScenarioEvent(t: 5, .end)]).render()
        #expect(svg.contains("due, missed"))
    }

    @Test("points lost to the timer's own callback stand before the fire that counts them")
    func lostToOwnCallback() {
        let timer = Scenario.TimerEntry(name: "T", first: 2, interval: 2, repeats: true, busy: 5)
        let events = [
            Sample.fire("T", 2, count: 1), Sample.fire("T", 8, count: 2, missed: 2), ScenarioEvent(t: 13, .end),
        ]
        let lane = Chart(scenario: Scenario(duration: 13, timers: [timer]), events: events).main.lanes[0]
        #expect(lane.missed.flatMap { Array($0.thinned(to: 1)) } == [4, 6, 10, 12])
        #expect(lane.busy.map(\.end) == [7, 13])
    }

    @Test("a name cannot break a line of the chart")
    func namesStayInTheirLine() {
        let scenario = Scenario(duration: 2, timers: [Scenario.TimerEntry(name: "a\nb\u{1B}[1m", first: 1)])
        let chart = TextChart(scenario: scenario, events: [Sample.fire("a\nb\u{1B}[1m", 1, count: 1)]).render()
        #expect(chart.contains("a\\nb\\u001b[1m"))
    }

    @Test("threads are named in the list")
    func threads() {
        let event = ScenarioEvent(
            t: 1, .fire(name: "T", count: 1, mode: "default", due: 1, missed: 0, manual: false), thread: "worker")
        let chart = TextChart(scenario: Scenario(duration: 2), events: [event]).render()
        #expect(chart.contains("+0.000000001  T fires, no. 1   (default)   on worker"))
    }

    // MARK: The picture

    @Test("the picture of X5 shows the band, the late fire and the missed point")
    func pictureOfX5() {
        let svg = SVGChart(scenario: Sample.x5, events: Sample.x5Events, title: "X5").render()
        #expect(svg.contains(">tracking</text>"))
        #expect(svg.contains(">3.596 s late</text>"))
        #expect(svg.contains(">due, missed</text>"))
        #expect(svg.contains(">X5</text>"))
        #expect(!svg.contains(">busy</text>"))
    }

    @Test("busy work, nested bands and marks are in the picture, and names are escaped")
    func crowdedPicture() {
        let svg = SVGChart(scenario: Sample.crowded, events: Sample.crowdedEvents).render()
        for text in ["busy", "modal", "in tracking", "fired by hand", "invalidated or cancelled"] {
            #expect(svg.contains(">\(text)</text>"), "\(text)")
        }
        #expect(svg.contains(">target deinitialised</text>"))
        #expect(svg.contains("&lt;T&gt; &amp; "))
        #expect(!svg.contains("<T>"))
        #expect(!svg.contains("<script"))
    }

    @Test("the same events give the same bytes")
    func deterministic() {
        func render() -> String { SVGChart(scenario: Sample.crowded, events: Sample.crowdedEvents).render() }
        let first = render()
        #expect((0..<20).allSatisfy { _ in render() == first })
    }

    @Test("XML has no place for control characters")
    func controlCharacters() {
        #expect(xmlEscaped("a\u{1}<\"&>é\t") == "a\u{FFFD}&lt;\"&amp;&gt;é\t")
    }

    @Test("extreme scenarios are drawn", arguments: [0, 1, 6_311_520_000_000_000_000] as [Int64])
    func extremes(duration: Int64) {
        let timer = Scenario.TimerEntry(name: "T", first: duration, interval: 100_000, repeats: true, busy: duration)
        let scenario = Scenario(duration: duration, timers: [timer])
        let events = [Sample.fire("T", duration, count: 1), ScenarioEvent(t: duration, .end)]
        #expect(!TextChart(scenario: scenario, events: events).render(width: 1).isEmpty)
        #expect(SVGChart(scenario: scenario, events: events).render().hasSuffix("</svg>\n"))
        #expect(!TextChart(scenario: Scenario(duration: duration), events: []).render().isEmpty)
        #expect(SVGChart(scenario: Scenario(duration: duration), events: []).render().hasSuffix("</svg>\n"))
    }

    @Test("a million missed points do not make a million circles")
    func manyPoints() {
        let timer = Scenario.TimerEntry(name: "T", first: 1_000, interval: 1_000, repeats: true)
        let events = [Sample.fire("T", 1_000_000_000, due: 1_000, count: 1, missed: 999_999)]
        let svg = SVGChart(scenario: Scenario(duration: 1_000_000_000, timers: [timer]), events: events).render()
        #expect(svg.utf8.count < 40_000)
    }
}

/// Events as the player prints them.
private enum Sample {
    static func fire(
        _ name: String, _ t: Int64, due: Int64? = nil, count: Int, mode: String = "default", missed: Int64 = 0,
        manual: Bool = false
    ) -> ScenarioEvent {
        ScenarioEvent(
            t: t, .fire(name: name, count: count, mode: mode, due: due ?? t, missed: missed, manual: manual))
    }

    static let lines: [(ScenarioEvent, String)] = [
        (
            fire("T", 2_000_000_000, count: 1),
            #"{"t":2.0,"event":"fire","name":"T","count":1,"mode":"default","due":2.0,"missed":0}"#
        ),
        (
            fire("T", 9_596_000_000, due: 6_000_000_000, count: 3, mode: "a\"b", missed: 1, manual: true),
            #"{"t":9.596,"event":"fire","name":"T","count":3,"mode":"a\"b","due":6.0,"missed":1,"manual":true}"#
        ),
        (
            ScenarioEvent(t: 1, .fire(name: "T", count: 1, mode: "m", due: 1, missed: 0, manual: true), thread: "w"),
            #"{"t":0.000000001,"event":"fire","name":"T","count":1,"mode":"m","due":0.000000001,"missed":0,"#
                + #""manual":true,"thread":"w"}"#
        ),
        (ScenarioEvent(t: 0, .invalidated(name: "T")), #"{"t":0.0,"event":"invalidated","name":"T"}"#),
        (ScenarioEvent(t: 0, .deinit(name: "o")), #"{"t":0.0,"event":"deinit","name":"o"}"#),
        (ScenarioEvent(t: 0, .runBegin(mode: "m")), #"{"t":0.0,"event":"runBegin","mode":"m"}"#),
        (ScenarioEvent(t: 0, .runEnd(mode: "m")), #"{"t":0.0,"event":"runEnd","mode":"m"}"#),
        (ScenarioEvent(t: 0, .busyBegin), #"{"t":0.0,"event":"busyBegin"}"#),
        (ScenarioEvent(t: 0, .busyEnd, thread: "w"), #"{"t":0.0,"event":"busyEnd","thread":"w"}"#),
        (ScenarioEvent(t: 0, .end), #"{"t":0.0,"event":"end"}"#),
    ]

    private static let second: Int64 = 1_000_000_000

    static let x5 = Scenario(
        duration: 13 * second,
        timers: [Scenario.TimerEntry(name: "T", first: 2 * second, interval: 2 * second, repeats: true)],
        runs: [Scenario.RunEntry(mode: "tracking", from: 5_085_000_000, until: 9_596_000_000)])

    static let x5Events = [
        fire("T", 2 * second, count: 1), fire("T", 4 * second, count: 2),
        ScenarioEvent(t: 5_085_000_000, .runBegin(mode: "tracking")),
        ScenarioEvent(t: 9_596_000_000, .runEnd(mode: "tracking")),
        fire("T", 9_596_000_000, due: 6 * second, count: 3, missed: 1), fire("T", 10 * second, count: 4),
        fire("T", 12 * second, count: 5), ScenarioEvent(t: 13 * second, .end),
    ]

    static let crowded = Scenario(
        duration: 12 * second, commonModes: ["tracking"],
        timers: [
            Scenario.TimerEntry(
                name: "<T> & \"company\" of a long name", first: second, interval: 2 * second, repeats: true,
                busy: second / 2),
            Scenario.TimerEntry(name: "U", first: 4 * second),
            Scenario.TimerEntry(name: "once", first: 3 * second, target: Scenario.Target(name: "owner", hold: .weak)),
        ])

    static let crowdedEvents = [
        fire("<T> & \"company\" of a long name", second, count: 1), fire("once", 3 * second, count: 1),
        ScenarioEvent(t: 3 * second, .deinit(name: "owner")), ScenarioEvent(t: 3 * second, .invalidated(name: "once")),
        fire("U", 3_500_000_000, due: 4 * second, count: 1, manual: true),
        ScenarioEvent(t: 3_500_000_000, .invalidated(name: "U")),
        ScenarioEvent(t: 4 * second, .runBegin(mode: "tracking")),
        ScenarioEvent(t: 5_500_000_000, .runBegin(mode: "modal")),
        ScenarioEvent(t: 7 * second, .runEnd(mode: "modal")),
        ScenarioEvent(t: 8 * second, .runEnd(mode: "tracking")),
        ScenarioEvent(t: 9 * second, .busyBegin), ScenarioEvent(t: 11 * second, .busyEnd),
        ScenarioEvent(t: 12 * second, .end),
    ]
}
