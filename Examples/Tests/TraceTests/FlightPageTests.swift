import RunLoopKit
import RunLoopSimulation
import Testing

@testable import runloop_trace

@Suite("Pictures of flights")
struct FlightPageTests {
    private func record(events: Int = 4096, _ body: (Simulation, RunLoop) -> Void) throws -> Flight {
        try withSimulation { simulation in
            let recorder = try FlightRecorder(simulation.loop, events: events)
            body(simulation, simulation.loop)
            return try recorder.memory.flight()
        }
    }

    /// Returns the flight of a second with a slow block, a late timer, a nested run and a call that is under way at the
    /// end.
    private func second() throws -> Flight {
        var flight: Result<Flight, any Error>?
        _ = try withSimulation { simulation in
            let loop = simulation.loop
            let recorder = try FlightRecorder(loop)
            let beat = Timer(timeInterval: .milliseconds(100), repeats: true) { _ in }
            beat.name = "<beat> & \"co\" \u{1B}"
            loop.add(beat, forMode: .common)
            loop.addCommonMode("drag")
            loop.task(name: "poller") { for try await _ in loop.clock.ticks(every: .milliseconds(300)) {} }
            loop.perform(afterDelay: .milliseconds(250)) { simulation.spend(.milliseconds(120)) }
            loop.perform(afterDelay: .milliseconds(500)) {
                loop.run(in: "drag", until: simulation.now + .milliseconds(200))
            }
            loop.perform(afterDelay: .milliseconds(900)) {
                simulation.spend(.milliseconds(50))
                loop.run(in: "drag", until: simulation.now + .milliseconds(30))
                flight = Result { try recorder.memory.flight() }
            }
            simulation.advance(by: .seconds(1))
        }
        return try #require(flight).get()
    }

    @Test("the page is well-formed, needs no other file, and has the runs, the calls, the delay and the last call")
    func page() throws {
        let flight = try second()
        let html = FlightPage(flights: [flight, flight]).html
        let page = Document(html)
        #expect(page.error == nil, "\(html)")
        #expect(page.references.isEmpty && !html.contains("url("))
        #expect(page.counts["svg"] == 2 && page.counts["run"] == 6, "\(page.counts)")
        // At 0.3 and at 0.9 s.
        #expect(page.counts["late"] == 4, "\(page.counts)")
        // A name is escaped wherever it is shown, and no control character comes into the page.
        #expect(page.text.contains(#"timer "<beat> & \"co\" \u001b""#))
        #expect(!html.contains("\u{1B}"))
        let expected = [
            "Under way at the end", "The latest timers", "70 ms", "delayed call", "mode drag", "Tasks, by their polls",
            "task \"poller\"", "Reasons to wake up", "a date",
        ]
        for words in expected {
            #expect(page.text.contains(words), "\(words) in \(page.text)")
        }
        #expect(Document(FlightChart(flight).svg).error == nil)
    }

    @Test("many short calls share pixels, so that the picture stays small")
    func small() throws {
        let flight = try record(events: 200_000) { simulation, loop in
            let timer = Timer(timeInterval: .milliseconds(10), repeats: true) { _ in simulation.spend(.microseconds(50))
            }
            loop.add(timer, forMode: .default)
            simulation.advance(by: .seconds(500))
        }
        #expect(flight.calls.count > 40_000)
        let svg = FlightChart(flight).svg
        #expect(svg.utf8.count < 400_000, "\(svg.utf8.count)")
        #expect(Document(svg).counts["narrow"].map { $0 > 900 } == true)
    }

    @Test("a flight without events has a page")
    func empty() throws {
        let flight = try record { _, _ in }
        #expect(Document(FlightPage(flights: [flight]).html).error == nil)
    }

    @Test("durations and coordinates are short")
    func words() {
        #expect(Duration.milliseconds(1500).inWords == "1.5 s" && Duration.nanoseconds(12).inWords == "12 ns")
        #expect((-1.5).coordinate == "-1.50" && 3.0.coordinate == "3" && (-0.25).coordinate == "-0.25")
    }
}
