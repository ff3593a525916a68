import RunLoopKit
import RunLoopSimulation
import Testing

@Suite("Ticks of a loop's clock")
struct TickTests {
    /// Returns the ticks that a task gets in ten seconds of virtual time, as "date+missed@now" in seconds.
    private func ticks(
        every interval: Duration, inModes modes: RunLoop.Modes = .common,
        _ body: nonisolated(nonsending) @escaping (RunLoop, Int) async throws -> Void = { _, _ in },
        meanwhile: (Simulation) -> Void = { $0.advance(by: .seconds(10)) }
    ) -> [String] {
        withSimulation { simulation in
            let loop = simulation.loop
            var ticks: [String] = []
            loop.task {
                for try await tick in loop.remote.clock(inModes: modes).ticks(every: interval) {
                    ticks.append("\(Self.seconds(tick.date))+\(tick.missed)@\(Self.seconds(loop.now))")
                    try await body(loop, ticks.count)
                }
            }
            meanwhile(simulation)
            return ticks
        }
    }

    private static func seconds(_ date: RunLoop.Instant) -> Double { Double(date.nanoseconds) / 1e9 }

    @Test("ticks keep to their dates")
    func grid() {
        #expect(ticks(every: .seconds(3)) == ["3.0+0@3.0", "6.0+0@6.0", "9.0+0@9.0"])
        #expect(ticks(every: .seconds(10)) == ["10.0+0@10.0"])
    }

    @Test("a late task gets one tick with the number of missed ones, and is back on its dates")
    func missed() {
        let ticks = ticks(every: .seconds(2)) { loop, count in
            if count == 1 { try await loop.clock.sleep(for: .seconds(5)) }
        }
        #expect(ticks == ["2.0+0@2.0", "4.0+1@7.0", "8.0+0@8.0", "10.0+0@10.0"])
    }

    @Test("ticks rest while the loop runs in a mode that is not theirs")
    func modes() {
        let ticks = ticks(
            every: .seconds(2), inModes: .default,
            meanwhile: { simulation in
                simulation.drag(from: .init(nanoseconds: 3_000_000_000), until: .init(nanoseconds: 7_000_000_000))
                simulation.advance(by: .seconds(10))
            })
        #expect(ticks == ["2.0+0@2.0", "4.0+1@7.0", "8.0+0@8.0", "10.0+0@10.0"])
    }

    @Test("a wait that is cancelled loses no tick, and the loop sleeps while no task waits")
    func cancelled() {
        withSimulation { simulation in
            let loop = simulation.loop
            var iterator = loop.clock.ticks(every: .seconds(4)).makeAsyncIterator()
            var log: [String] = []
            let task = loop.task {
                do { _ = try await iterator.next() } catch { log.append("\(error) \(loop.now)") }
                try await loop.task {
                    let tick = try await iterator.next()!
                    log.append("\(tick.date) \(tick.missed)")
                }.value
            }
            loop.perform(afterDelay: .seconds(1)) { task.cancel() }
            simulation.runUntilIdle()
            #expect(log == ["CancellationError() 1.000000000", "4.000000000 0"])
            #expect(simulation.now == RunLoop.Instant(nanoseconds: 4_000_000_000))
        }
    }

    @Test("an interval of zero is taken as a timer takes it, and a tick that is a year late counts")
    func extremes() {
        withSimulation { simulation in
            let loop = simulation.loop
            var log: [String] = []
            loop.task {
                var iterator = loop.clock.ticks(every: .zero, tolerance: .seconds(-1)).makeAsyncIterator()
                log.append("\(try await iterator.next()!.date)")
                iterator = loop.clock.ticks(every: .nanoseconds(1)).makeAsyncIterator()
                try await loop.clock.sleep(for: .seconds(31_536_000))
                log.append("\(try await iterator.next()!.missed)")
            } then: {
                log.append("\($0)")
            }
            simulation.advance(by: .seconds(31_536_001))
            #expect(log == ["0.000100000", "31535999999999999", "success()"])
        }
    }
}
