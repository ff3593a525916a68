import Testing

@testable import Scenarios

@Suite("The chart in the terminal")
struct TextChartTests {
    @Test("the chart of X5 shows late and missed fires, and the mode above them")
    func chartOfX5() {
        let lines = TextChart(scenario: OneThread.x5, events: OneThread.x5Events).render(width: 80).split(
            separator: "\n")
        #expect(
            lines.prefix(4) == [
                // Five columns for each second.
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
        let rows = TextChart(scenario: OneThread.crowded, events: OneThread.crowdedEvents).render(width: width)
            .split(separator: "\n", omittingEmptySubsequences: false).prefix { !$0.isEmpty }
        #expect(rows.count == 8)
        #expect(rows.allSatisfy { $0.count <= width })
    }

    @Test("busy work, nested runs, fires by hand and the ends of timers and targets are in the chart")
    func crowdedChart() {
        let chart = TextChart(scenario: OneThread.crowded, events: OneThread.crowdedEvents).render()
        let rows = chart.split(separator: "\n")
        #expect(rows[0].hasPrefix("  mode  ") && rows[0].contains("default") && rows[0].contains("░ tracking ░"))
        #expect(rows[1].contains("░ modal ░"))
        #expect(rows.first { $0.hasPrefix("  busy") }?.contains("████") == true)
        #expect(rows.first { $0.hasPrefix("  once") }?.contains("●†✕") == true)
        #expect(rows.first { $0.hasPrefix("  U ") }?.contains("◆") == true)
        #expect(chart.contains("U fires by hand, no. 1, due +4.000"))
        #expect(chart.contains("owner deinits"))
    }

    @Test("a timer that starves to the end shows its unreported missed points")
    func starvedToTheEnd() {
        let timer = Scenario.TimerEntry(name: "T", first: 1, interval: 1, repeats: true, modes: ["modal"])
        let scenario = Scenario(duration: 5, timers: [timer])
        let chart = TextChart(scenario: scenario, events: [ScenarioEvent(t: 5, .end)]).render()
        #expect(chart.split(separator: "\n").first { $0.hasPrefix("  T") }?.count { $0 == "·" } == 5)
    }

    @Test("a name cannot break a line of the chart")
    func namesStayInTheirLine() {
        let scenario = Scenario(duration: 2, timers: [Scenario.TimerEntry(name: "a\nb\u{1B}[1m", first: 1)])
        let chart = TextChart(scenario: scenario, events: [OneThread.fire("a\nb\u{1B}[1m", 1, count: 1)]).render()
        #expect(chart.contains("a\\nb\\u001b[1m"))
    }

    @Test("threads are named in the list")
    func threads() {
        let event = ScenarioEvent(
            t: 1, .fire(name: "T", count: 1, mode: "default", due: 1, missed: 0, manual: false), thread: "worker")
        let chart = TextChart(scenario: Scenario(duration: 2), events: [event]).render()
        #expect(chart.contains("+0.000000001  T fires, no. 1   (default)   on worker"))
    }

    @Test("extreme scenarios are drawn", arguments: [0, 1, 6_311_520_000_000_000_000] as [Int64])
    func extremes(duration: Int64) {
        let timer = Scenario.TimerEntry(name: "T", first: duration, interval: 100_000, repeats: true, busy: duration)
        let scenario = Scenario(duration: duration, timers: [timer])
        let events = [OneThread.fire("T", duration, count: 1), ScenarioEvent(t: duration, .end)]
        #expect(!TextChart(scenario: scenario, events: events).render(width: 1).isEmpty)
        #expect(!TextChart(scenario: Scenario(duration: duration), events: []).render().isEmpty)
    }

    @Test("each thread has its lanes in the chart, below its name and its busy work")
    func chart() {
        // The handlers of the background do not make the main loop busy. A mark is on the first lane of its source.
        #expect(
            TextChart(scenario: Threads.scenario, events: Threads.events).rows(width: 80).prefix(9) == [
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
        let chart = TextChart(scenario: Threads.scenario, events: Threads.events).render(width: 80)
        let lines = chart.split(separator: "\n")
        #expect(lines.contains("  +7.000  S fires, no. 2, due +4.000, data 2   (default)"))
        #expect(lines.contains("  +7.020  L is called, no. 2, 101 dropped      (default)"))
        #expect(lines.contains("  +2.000  B fires, no. 1   on background-1"))
        #expect(lines.contains("  +4.500  B is cancelled   on background-2"))
        #expect(lines.contains("  +7.020  L shows 2 FPS"))
        #expect(lines.contains("  +7.500  C ticks (1), 3 left                  (default)"))
        #expect(!chart.contains("on main"))
    }

    @Test("a scenario of one thread has no thread names in its pictures")
    func oneThread() {
        let scenario = Scenario(duration: 2, sources: [Scenario.SourceEntry(name: "S", start: 1)])
        let events = ScenarioPlayer(scenario).play()
        #expect(events.allSatisfy { $0.thread == "main" })
        #expect(!TextChart(scenario: scenario, events: events).render().contains("on main"))
    }
}
