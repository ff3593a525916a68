import Testing

@testable import Scenarios

@Suite("The chart as a picture")
struct SVGChartTests {
    @Test("the picture of X5 shows the band, the late fire and the missed point")
    func pictureOfX5() {
        let svg = SVGChart.document([SVGChart(scenario: OneThread.x5, events: OneThread.x5Events, title: "X5")])
        #expect(svg.contains(">tracking</text>"))
        #expect(svg.contains(">3.596 s late</text>"))
        #expect(svg.contains(">due, missed</text>"))
        #expect(svg.contains(">X5</text>"))
        #expect(!svg.contains(">busy</text>"))
    }

    @Test("busy work, nested bands and marks are in the picture, and names are escaped")
    func crowdedPicture() {
        let svg = SVGChart.document([SVGChart(scenario: OneThread.crowded, events: OneThread.crowdedEvents)])
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
        func render() -> String {
            SVGChart.document([SVGChart(scenario: OneThread.crowded, events: OneThread.crowdedEvents)])
        }
        let first = render()
        #expect((0..<20).allSatisfy { _ in render() == first })
    }

    @Test("a timer that starves to the end shows its unreported missed points")
    func starvedToTheEnd() {
        let timer = Scenario.TimerEntry(name: "T", first: 1, interval: 1, repeats: true, modes: ["modal"])
        let scenario = Scenario(duration: 5, timers: [timer])
        let svg = SVGChart.document([SVGChart(scenario: scenario, events: [ScenarioEvent(t: 5, .end)])])
        #expect(svg.contains("due, missed"))
    }

    @Test("extreme scenarios are drawn", arguments: [0, 1, 6_311_520_000_000_000_000] as [Int64])
    func extremes(duration: Int64) {
        let timer = Scenario.TimerEntry(name: "T", first: duration, interval: 100_000, repeats: true, busy: duration)
        let scenario = Scenario(duration: duration, timers: [timer])
        let events = [OneThread.fire("T", duration, count: 1), ScenarioEvent(t: duration, .end)]
        #expect(SVGChart.document([SVGChart(scenario: scenario, events: events)]).hasSuffix("</svg>\n"))
        #expect(SVGChart.document([SVGChart(scenario: Scenario(duration: duration), events: [])]).hasSuffix("</svg>\n"))
    }

    @Test("a million missed points do not make a million circles")
    func manyPoints() {
        let timer = Scenario.TimerEntry(name: "T", first: 1_000, interval: 1_000, repeats: true)
        let events = [OneThread.fire("T", 1_000_000_000, due: 1_000, count: 1, missed: 999_999)]
        let svg = SVGChart.document([
            SVGChart(scenario: Scenario(duration: 1_000_000_000, timers: [timer]), events: events)
        ])
        #expect(svg.utf8.count < 40_000)
    }

    @Test("each thread has its lanes in the picture")
    func picture() {
        let svg = SVGChart.document([SVGChart(scenario: Threads.scenario, events: Threads.events)])
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
        let svg = SVGChart.document([SVGChart(scenario: scenario, events: events)])
        #expect(!svg.contains(">thread</text>") && svg.contains(">mode</text>"))
    }
}
