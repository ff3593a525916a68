import Testing

@testable import Scenarios

@Suite("What both pictures show")
struct ChartTests {
    @Test("points lost to the timer's own callback stand before the fire that counts them")
    func lostToOwnCallback() {
        let timer = Scenario.TimerEntry(name: "T", first: 2, interval: 2, repeats: true, busy: 5)
        let events = [
            OneThread.fire("T", 2, count: 1), OneThread.fire("T", 8, count: 2, missed: 2), ScenarioEvent(t: 13, .end),
        ]
        let lane = Chart(scenario: Scenario(duration: 13, timers: [timer]), events: events).main.lanes[0]
        #expect(lane.missed.flatMap { Array($0.thinned(to: 1)) } == [4, 6, 10, 12])
        #expect(lane.busy.map(\.end) == [7, 13])
    }

    @Test("dropped frames are drawn at their dates, and a source's missed fires between date and delivery")
    func points() {
        let chart = Chart(scenario: Threads.scenario, events: Threads.events)
        #expect(chart.threads.map(\.name) == ["main", "background-1", "background-2"])
        let source = chart.main.lanes[0]
        #expect(source.missed.flatMap { Array($0.thinned(to: 1)) } == [6 * Threads.second])
        let link = chart.main.lanes[1]
        #expect(link.missed.map(\.count) == [101])
        #expect(link.missed.map(\.first) == [3 * Threads.second])
        #expect(chart.others.map { $0.lanes.map(\.fires.count) } == [[1], [1]])
        #expect(chart.others.map(\.busy.count) == [1, 1])
    }
}
