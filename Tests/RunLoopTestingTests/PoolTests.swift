import Dispatch
import Foundation
import Glibc
import RunLoopExploration
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopTesting
import TestSupport
import Testing

private typealias RunLoop = RunLoopKit.RunLoop

/// Waits in a function whose frame stays on the stack in a release build, because something follows the wait.
@inline(never)
private func waitInFunction(for semaphore: DispatchSemaphore, then log: Log<String>) {
    semaphore.wait()
    log("never")
}

@Suite("A default executor with several threads")
struct PoolTests {
    @Test("as many jobs are under way as it has threads", arguments: [1, 2, 3])
    func width(_ width: Int) {
        withSimulation { simulation in
            simulation.captureExecutors(width: width)
            let log = Log<String>()
            for number in 1...3 {
                Task {
                    usleep(1_000_000)
                    log("\(number) at \(simulation.now)")
                }
            }
            #expect(simulation.runUntilIdle() == .done)
            #expect(log.entries == (1...3).map { "\($0) at \(($0 + width - 1) / width).000000000" })
        }
    }

    @Test("the most urgent job goes first, and equal ones in the order in which they came")
    func priorities() {
        withSimulation { simulation in
            simulation.captureExecutors(width: 1)
            let log = Log<String>()
            Task { usleep(1000) }
            simulation.yield()
            for (name, priority) in [("a", TaskPriority.low), ("b", .medium), ("c", .high), ("d", .medium)] {
                Task(priority: priority) { log(name) }
            }
            simulation.runUntilIdle()
            #expect(log.entries == ["c", "b", "d", "a"])
        }
    }

    @Test("a job that blocks holds its thread until another job wakes it")
    func semaphore() {
        withSimulation { simulation in
            simulation.captureExecutors(width: 2)
            let (semaphore, log) = (DispatchSemaphore(value: 0), Log<String>())
            Task {
                semaphore.wait()
                log("woken at \(simulation.now)")
            }
            for number in 1...2 {
                Task {
                    usleep(1_000_000)
                    log("\(number) at \(simulation.now)")
                    if number == 2 { semaphore.signal() }
                }
            }
            #expect(simulation.runUntilIdle() == .done)
            #expect(log.entries == ["1 at 1.000000000", "2 at 2.000000000", "woken at 2.000000000"])
            #expect(simulation.isReproducible)
        }
    }

    @Test("exhaustion says who blocks where, and who waits; the blocked threads end with the simulation")
    func exhaustion() throws {
        let log = Log<String>()
        try withSimulation { simulation in
            simulation.captureExecutors(width: 2)
            let semaphore = DispatchSemaphore(value: 0)
            for number in 1...2 {
                Task(name: "reader \(number)") {
                    waitInFunction(for: semaphore, then: log)
                }
            }
            Task(name: "writer") { for _ in 1...2 { semaphore.signal() } }
            guard case .stuck(let waits) = simulation.runUntilIdle() else {
                Issue.record("\(simulation.standing)")
                return
            }
            try #require(waits.count == 3, "\(waits)")
            for number in 0...1 {
                let words = "\(waits[number])"
                #expect(words.contains("default executor \(number + 1) has waited since 0.000000000 for a semaphore"))
                #expect(words.contains("in the task \"reader \(number + 1)\""))
                #expect(words.contains("waitInFunction(for:then:)"))
            }
            #expect(
                "\(waits[2])".hasSuffix(
                    "of the default executor has waited since 0.000000000 for one of its 2 threads, which are blocked"))
            semaphore.signal()
            semaphore.signal()
            #expect(simulation.runUntilIdle() == .done)
            #expect(log.entries == ["never", "never"])
            Task {
                semaphore.wait()
                semaphore.wait()
                semaphore.wait()
                log("after the end")
            }
            simulation.runUntilIdle()
        }
        #expect(log.entries == ["never", "never"])
    }

    @Test("an exploration reports exhaustion as a deadlock, and nothing with a thread more")
    func explored() throws {
        func explore(width: Int) -> Exploration.Result {
            Exploration(schedules: 100, seed: 1).run { simulation in
                simulation.captureExecutors(width: width)
                let semaphore = DispatchSemaphore(value: 0)
                // Both threads block if both begin before its second part.
                Task {
                    await Task.yield()
                    for _ in 1...2 { semaphore.signal() }
                }
                for _ in 1...2 { Task { semaphore.wait() } }
                simulation.runUntilIdle()
            }
        }
        guard case .failed(let finding) = explore(width: 2), case .passed = explore(width: 3) else {
            Issue.record("not found with two threads, or found with three")
            return
        }
        #expect(finding.fault.kind == .deadlock)
        #expect(finding.fault.description.contains("for a semaphore"), "\(finding)")
    }

    @Test("waits without a limit end when a thread of the simulation signals them")
    func conditions() {
        withSimulation { simulation in
            simulation.captureExecutors()
            let (condition, flag) = (NSCondition(), Flag())
            let worker = LoopThread(name: "worker") { loop in
                loop.perform(afterDelay: .seconds(5)) {
                    condition.lock()
                    flag.set()
                    condition.signal()
                    condition.unlock()
                }
            }
            condition.lock()
            while !flag.isSet { condition.wait() }
            condition.unlock()
            #expect(simulation.now >= RunLoop.Instant(nanoseconds: 5_000_000_000))
            #expect(simulation.isReproducible && simulation.escapes.isEmpty)
            worker.join()
        }
    }

    @Test("waits without a limit for a thread outside keep the time where it is")
    func outside() {
        withSimulation { simulation in
            simulation.captureExecutors()
            let semaphore = DispatchSemaphore(value: 0)
            let thread = PlainThread { semaphore.signal() }
            semaphore.wait()
            thread.join()
            let late = PlainThread {
                usleep(100_000)
                semaphore.signal()
            }
            // Nothing else is left to do.
            semaphore.wait()
            #expect(simulation.now == RunLoop.Instant(nanoseconds: 0))
            late.join()
        }
    }

    @Test("each process of a host has threads of its own")
    func hosts() {
        withSimulation { simulation in
            simulation.captureExecutors(width: 1)
            let network = SimulatedNetwork(simulation)
            let log = Log<String>()
            for name in ["left", "right"] {
                network.addHost(name) { loop in
                    loop.add(CustomSource(), forMode: .default)
                    for number in 1...2 {
                        Task {
                            sleep(10)
                            log("\(name) \(number) at \(simulation.now)")
                        }
                    }
                }
            }
            simulation.advance(by: .seconds(15))
            #expect(log.entries == ["left 1 at 10.000000000", "right 1 at 10.000000000"])
            simulation.advance(by: .seconds(15))
            #expect(log.entries.dropFirst(2) == ["left 2 at 20.000000000", "right 2 at 20.000000000"])
        }
    }

    @Test("jobs that wait when their process ends still run")
    func ends() {
        withSimulation { simulation in
            simulation.captureExecutors(width: 1)
            let log = Log<String>()
            SimulatedNetwork(simulation).addHost("brief") { _ in
                for number in 1...2 {
                    Task {
                        sleep(10)
                        log("\(number) at \(simulation.now)")
                    }
                }
            }
            simulation.advance(by: .seconds(30))
            #expect(log.entries == ["1 at 10.000000000", "2 at 20.000000000"])
        }
    }

    @Test("actors, sleeps and groups work on any width", arguments: [1, 2, 8])
    func everything(width: Int) {
        withSimulation { simulation in
            simulation.captureExecutors(width: width)
            let log = Log<Int>()
            Task {
                let sum = await withTaskGroup(of: Int.self) { group in
                    for number in 1...20 {
                        group.addTask {
                            try? await Task.sleep(for: .seconds(number))
                            await Task.yield()
                            return number
                        }
                    }
                    return await group.reduce(0, +)
                }
                log.append(sum)
            }
            #expect(simulation.runUntilIdle() == .done)
            #expect(log.entries == [210] && simulation.now == RunLoop.Instant(nanoseconds: 20_000_000_000))
        }
    }
}
