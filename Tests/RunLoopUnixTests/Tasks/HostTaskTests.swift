@_spi(Ports) import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopUnix

@Suite("Names looked up by tasks", .timeLimit(.minutes(5)))
struct HostTaskTests {
    /// Returns the result that a task receives, and its time, with a resolver that takes 5 s of virtual time.
    private func outcome(
        _ name: String, timeout: Duration = .seconds(30), cancelledAfter: Duration? = nil
    ) -> String {
        withSimulation { simulation in
            HostResolver.finder.set(
                { _ in
                    simulation.spend(.seconds(5))
                    return .success([try! Endpoint("192.0.2.1", port: 0)])
                }, in: simulation.loop.world)
            let loop = simulation.loop
            var outcome = "nothing"
            let task = loop.task {
                try await HostResolver.resolve(name, port: 80, on: loop, timeout: timeout).map(\.description)
            } then: {
                outcome = "\($0) \(loop.now)"
            }
            if let cancelledAfter { loop.perform(afterDelay: cancelledAfter) { task.cancel() } }
            simulation.runUntilIdle()
            return outcome
        }
    }

    @Test("a task is given the addresses, the failure, or the cancellation, when it comes")
    func outcomes() {
        #expect(outcome("one.test") == "success([\"192.0.2.1:80\"]) 5.000000000")
        #expect(outcome("192.0.2.7") == "success([\"192.0.2.7:80\"]) 0.000000000")
        #expect(outcome("").hasPrefix("failure(: the name is empty"))
        #expect(
            outcome("one.test", timeout: .seconds(2))
                == "failure(one.test: no answer within 2.0 seconds) 2.000000000")
        #expect(
            outcome("one.test", cancelledAfter: .seconds(1)) == "failure(Swift.CancellationError()) 1.000000000")
    }

    @Test("the end of the loop ends the wait")
    func loopEnds() {
        withSimulation { simulation in
            HostResolver.finder.set(
                { name in
                    simulation.spend(.seconds(5))
                    return .failure(.init(.other, name: name, reason: "too late"))
                }, in: simulation.loop.world)
            let log = Log<String>()
            let thread = LoopThread(name: "short") { loop in
                loop.task {
                    _ = try await HostResolver.resolve("one.test", port: 80, on: loop)
                } then: {
                    log("\($0)")
                }
                nonisolated(unsafe) let ownLoop = loop
                Task(executorPreference: loop.remote.executor().task) {
                    do { _ = try await HostResolver.resolve("two.test", port: 80, on: ownLoop) } catch {
                        log("\(error)")
                    }
                }
                loop.perform(afterDelay: .seconds(1)) { loop.endAllRuns() }
            }
            simulation.runUntilIdle()
            thread.join()
            let words = "the run loop \"short\" has ended"
            #expect(Set(log.entries) == [words, "failure(\(words))"])
        }
    }
}
