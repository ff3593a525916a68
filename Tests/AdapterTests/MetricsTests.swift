#if Adapters
import MetricsTestKit
@_spi(Ports) import RunLoopCore
import RunLoopKit
import RunLoopLibevent
import RunLoopMetrics
import RunLoopSimulation
import Testing

@Suite("Metrics")
struct MetricsTests {
    @Test("counters are published as they grow, lateness for each interval, and the loop's response time")
    func published() throws {
        let factory = TestMetrics()
        withSimulation { simulation in
            let loop = simulation.loop
            let metrics = LoopMetrics(loop.remote, name: "main", interval: .seconds(10), factory: factory)
            let timer = Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in
                if loop.now.nanoseconds == 12_000_000_000 { simulation.spend(.seconds(3)) }
            }
            simulation.advance(by: .milliseconds(31_500))
            withExtendedLifetime((metrics, timer)) {}
        }
        let loop = ("loop", "main")
        let fires = try factory.expectCounter("runloop.fires", [loop]).values
        #expect(fires.count == 3)
        // The call at 12 s takes until 15 s: the dates up to then pass without a fire.
        #expect(fires.reduce(0, +) == 30 - 3)
        let most = try factory.expectGauge("runloop.lateness", [loop, ("quantile", "1")]).values
        #expect(most.count == 3)
        #expect(most[0] == 0 && most[1] == 0 && most[2] == 0, "no deadline was served late: \(most)")
        let response = try factory.expectTimer("runloop.response", [loop])
        #expect(response.values == [0, 0, 0])
    }

    @Test("a blocked loop answers late, and once for all probes sent meanwhile")
    func blocked() throws {
        let factory = TestMetrics()
        withSimulation { simulation in
            let loop = simulation.loop
            let metrics = LoopMetrics(loop.remote, name: "main", interval: .seconds(10), factory: factory)
            loop.perform(afterDelay: .seconds(8)) { simulation.spend(.seconds(17)) }
            loop.perform(afterDelay: .seconds(9)) {}
            simulation.advance(by: .seconds(35))
            withExtendedLifetime(metrics) {}
        }
        let loop = ("loop", "main")
        let response = try factory.expectTimer("runloop.response", [loop])
        #expect(response.values == [15_000_000_000, 0])
        let most = try factory.expectGauge("runloop.lateness", [loop, ("quantile", "1")]).values
        // The loop answers first of all in its next pass, and serves the late call in the same one.
        #expect(most == [0, 16], "the call of the ninth second was served 16 s late")
    }

    @Test("metrics keep no run from finishing, and end with their loop")
    func ends() {
        let factory = TestMetrics()
        withSimulation { simulation in
            let remote = Locked<RunLoop.Remote?>(nil)
            let thread = LoopThread(name: "short") { loop in
                remote.withLock { $0 = loop.remote }
                loop.perform(afterDelay: .seconds(5)) {}
            }
            simulation.advance(by: .seconds(1))
            let metrics = LoopMetrics(remote.withLock { $0! }, name: "short", interval: .seconds(1), factory: factory)
            thread.join()
            #expect(simulation.now >= RunLoop.Instant(nanoseconds: 5_000_000_000))
            #expect(simulation.runUntilIdle() == .done)
            withExtendedLifetime(metrics) {}
        }
    }

    @Test("metrics end with a loop that was asked and has not answered by its end")
    func unanswered() {
        withSimulation { simulation in
            // This loop does not run, so that it is asked and does not answer before its end.
            var loop: RunLoop? = RunLoop.real()
            let metrics = LoopMetrics(loop!.remote, name: "idle", interval: .seconds(1), factory: TestMetrics())
            simulation.advance(by: .seconds(3))
            loop = nil
            #expect(simulation.runUntilIdle(limit: .seconds(60)) == .done)
            withExtendedLifetime(metrics) {}
        }
    }
}
#endif
