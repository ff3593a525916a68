import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("Simulations: how they stand")
struct StandingTests {
    @Test("done: nothing is left in any thread")
    func done() {
        withSimulation { simulation in
            #expect(simulation.standing == .done)
            _ = LoopThread(name: "worker") { $0.perform(at: seconds(3)) {} }
            #expect(simulation.runUntilIdle() == .done)
            #expect(simulation.now == seconds(3) && simulation.waits.isEmpty)
            #expect("\(simulation.standing)" == "done")
        }
    }

    @Test("idle: the next timer of any thread is named, with its date and its line")
    func idle() {
        withSimulation { simulation in
            let timer = Timer.scheduledTimer(withTimeInterval: .seconds(7), repeats: true) { _ in }
            timer.name = "slow"
            let worker = LoopThread(name: "worker") { loop in
                Timer.scheduledTimer(withTimeInterval: .seconds(3), repeats: true) { _ in }.name = "fast"
            }
            // The worker has not begun.
            #expect(simulation.standing == .idle(until: seconds(0), next: "worker has its turn"))
            simulation.advance(to: seconds(1))
            let line = #line - 5
            let fast = "timer \"fast\" (RunLoopSimulationTests/StandingTests.swift:\(line)) of worker"
            #expect(simulation.standing == .idle(until: seconds(3), next: fast))
            #expect("\(simulation.standing)" == "idle until 3.000000000: \(fast)")
            simulation.advance(to: seconds(6))
            #expect(simulation.standing == .idle(until: seconds(7), next: "\(timer) of main"))
            withExtendedLifetime(worker) {}
        }
    }

    @Test("idle: work to do at once is named as well")
    func now() {
        withSimulation { simulation in
            let loop = simulation.loop
            let source = CustomSource()
            loop.add(source, forMode: .default)
            source.signal()
            #expect(simulation.standing == .idle(until: seconds(0), next: "\(source) of main"))
            simulation.advance(by: .zero)
            loop.perform {}
            guard case .idle(until: seconds(0), let next) = simulation.standing else {
                Issue.record("\(simulation.standing)")
                return
            }
            #expect(next.hasPrefix("block (RunLoopSimulationTests/StandingTests.swift:") && next.hasSuffix(") of main"))
            simulation.advance(by: .zero)
            LoopThread(name: "worker") { [remote = source.remote] _ in remote.signal() }.join()
            #expect(simulation.standing == .idle(until: seconds(0), next: "main has been woken"))
        }
    }

    @Test("idle: sleeps of tasks, work, and the limits of runs")
    func otherDates() {
        withSimulation { simulation in
            let loop = simulation.loop
            let task = loop.task { try await loop.clock.sleep(for: .seconds(5)) }
            simulation.advance(by: .zero)
            #expect(simulation.standing == .idle(until: seconds(5), next: "a sleep of main"))
            task.cancel()
            simulation.runUntilIdle()
            let works = LoopThread(name: "works") { $0.perform { simulation.spend(.seconds(2)) } }
            let runs = LoopThread(name: "runs") { loop in
                loop.add(CustomSource(), forMode: .tracking)
                loop.run(in: .tracking, until: seconds(4))
            }
            simulation.advance(by: .zero)
            #expect(simulation.standing == .idle(until: seconds(2), next: "works has done its work"))
            simulation.advance(to: seconds(3))
            #expect(simulation.standing == .idle(until: seconds(4), next: "a run of runs reaches its limit"))
            #expect(simulation.runUntilIdle() == .done)
            withExtendedLifetime((works, runs)) {}
        }
    }

    @Test("stuck: each waiting thread is named, with its awaited item, the start of the wait, and the item's origin")
    func stuck() {
        withSimulation { simulation in
            let loop = simulation.loop
            let source = CustomSource()
            loop.add(source, forMode: .default)
            let timer = Timer(fire: seconds(1), interval: .zero, repeats: false) { _ in }
            timer.name = "scroll"
            loop.add(timer, forMode: .tracking)
            let worker = LoopThread(name: "worker") { loop in
                loop.add(CustomSource(), forMode: .default)
                loop.perform(at: seconds(2)) {}
            }
            let line = #line - 3
            let standing = simulation.runUntilIdle()
            #expect(
                "\(standing)" == """
                    stuck:
                      main has waited since 0.000000000 for \(timer) in tracking, due 1.000000000
                      main has waited since 0.000000000 for \(source) in default
                      worker has waited since 2.000000000 for source (RunLoopSimulationTests/StandingTests.swift:\(line)) in default
                    """)
            guard case .stuck(let waits) = standing else { return }
            #expect(waits == simulation.waits)
            #expect(waits.map(\.origin?.line) == [timer.origin.line, source.origin.line, UInt32(line)])
            // The test's thread wakes for the end of its run, the other one does not.
            simulation.advance(to: seconds(9))
            #expect(simulation.waits.map(\.since) == [seconds(9), seconds(9), seconds(2)])
            worker.stop()
            worker.join()
            source.invalidate()
            timer.invalidate()
            #expect(simulation.standing == .done)
        }
    }

    @Test("stuck: threads that wait for the end of others, and for their blocks, seen from any thread")
    func threads() {
        let seen = Log<String>()
        withSimulation { simulation in
            @Sendable func look() {
                seen.append("\(simulation.standing)")
                for wait in simulation.waits where wait.origin == nil { seen.append("\(wait)") }
            }
            let server = LoopThread(name: "server") { loop in
                loop.add(CustomSource(), forMode: .default)
                loop.perform(at: seconds(2)) { [unowned loop] in
                    simulation.spend(.seconds(2))
                    loop.perform { look() }
                }
            }
            let joins = LoopThread(name: "joins") { _ in server.join() }
            let asks = LoopThread(name: "asks") { loop in
                loop.perform(at: seconds(3)) { try? server.remote.performAndWait { _ in } }
            }
            simulation.advance(to: seconds(3))
            look()
            simulation.advance(to: seconds(5))
            look()
            withExtendedLifetime((joins, asks)) {}
            server.stop()
        }
        #expect(
            seen.entries == [
                "idle until 4.000000000: server has done its work",
                "joins has waited since 0.000000000 for the end of server",
                "asks has waited since 3.000000000 for a block on server",
                "idle until 4.000000000: server has been woken",
                "joins has waited since 0.000000000 for the end of server",
                "asks has waited since 3.000000000 for a block on server",
                """
                stuck:
                  server has waited since 4.000000000 for source (RunLoopSimulationTests/StandingTests.swift:129) in default
                  joins has waited since 0.000000000 for the end of server
                """,
                "joins has waited since 0.000000000 for the end of server",
            ])
    }

    @Test("threads that only serve others are not stuck")
    func services() {
        withSimulation { simulation in
            DeliveryQueue.background.asyncAfter(.seconds(1)) {}
            #expect(simulation.runUntilIdle() == .done)
        }
    }

    @Test("escaped: events from outside are reported before all else")
    func escaped() {
        withSimulation { simulation in
            let isOver = Flag()
            simulation.loop.add(CustomSource(), forMode: .default)
            simulation.loop.task {
                try? await Task.sleep(for: .milliseconds(50))
                isOver.set()
            }
            simulation.settle { isOver.isSet && !simulation.escapes.isEmpty }
            #expect(simulation.standing == .escaped(simulation.escapes))
            let lines = "\(simulation.standing)".split(separator: "\n")
            #expect(lines.first == "escaped:" && lines.count == simulation.escapes.count + 1)
            #expect(
                lines.last?.hasSuffix(" came to main at 0.000000000 from a thread outside of the simulation") == true)
            #expect(simulation.waits.count == 1)
        }
    }
}
