import Glibc
import RunLoopKit
import RunLoopSimulation
import RunLoopTesting
import TestSupport
import Testing

/// Begins and ends many captures on many threads at a time.
private func captureOnManyThreads() {
    alarm(60)
    let threads = (0..<8).map { _ in
        PlainThread {
            for _ in 0..<1500 {
                withSimulation { simulation in
                    simulation.captureExecutors()
                    for _ in 0..<4 { Task.detached { await Task.yield() } }
                    _ = simulation.runUntilIdle()
                }
            }
        }
    }
    for thread in threads { thread.join() }
}

@Suite("Capturing the default executor")
struct CaptureTests {
    @Test("captures begin and end on many threads at a time")
    func manyThreads() async {
        await #expect(processExitsWith: .success) { captureOnManyThreads() }
    }

    @Test("tasks and actors of the default executor live in the simulation")
    func captured() {
        withSimulation(traced: true) { simulation in
            simulation.captureExecutors()
            let loop = simulation.loop
            let clock = loop.clock
            let log = Log<String>()
            let tally = Tally()
            loop.task {
                await withTaskGroup { group in
                    for number in 1...3 {
                        group.addTask {
                            try? await clock.sleep(for: .seconds(number))
                            await Task.yield()
                            log("\(number) at \(await tally.add()) \(simulation.now)")
                        }
                    }
                }
                let last = await Task.detached { () -> String in
                    try? await clock.sleep(for: .seconds(1))
                    return "detached \(simulation.now)"
                }.value
                log(last)
            }
            #expect(simulation.runUntilIdle() == .done)
            #expect(
                log.entries == [
                    "1 at 1 1.000000000", "2 at 2 2.000000000", "3 at 3 3.000000000", "detached 4.000000000",
                ])
            #expect(simulation.escapes.isEmpty, "\(simulation.escapes)")
        }
    }

    @Test("tasks continue while the loop works or runs in another mode")
    func otherModes() {
        withSimulation { simulation in
            simulation.captureExecutors()
            let log = Log<String>()
            let thread = LoopThread(name: "time") { $0.add(CustomSource(), forMode: .default) }
            let clock = thread.remote.clock()
            Task.detached {
                for _ in 1...3 {
                    try await clock.sleep(for: .seconds(1))
                    log("\(simulation.now)")
                }
            }
            let loop = simulation.loop
            loop.perform(afterDelay: .milliseconds(500)) { simulation.spend(.seconds(2)) }
            simulation.advance(by: .seconds(1))
            #expect(log.entries == ["1.000000000", "2.000000000"])
            loop.add(CustomSource(), forMode: .tracking)
            loop.run(in: .tracking, until: simulation.now + .seconds(1))
            #expect(log.entries == ["1.000000000", "2.000000000", "3.000000000"])
        }
    }

    @Test("a sleep on a clock of Swift's ends at its exact virtual time, in the order of the ends")
    func sleeps() {
        withSimulation { simulation in
            simulation.captureExecutors()
            let log = Log<String>()
            Task.detached {
                try await Task.sleep(for: .seconds(1000))
                log("detached \(simulation.now)")
                try await Task.sleep(for: .nanoseconds(1), clock: .suspending)
                log("suspending \(simulation.now)")
            }
            Task { @MainActor in
                try await Task.sleep(until: .now + .milliseconds(1500), clock: .continuous)
                log("main actor \(simulation.now)")
                try await Task.sleep(nanoseconds: 500_000_000)
                log("nanoseconds \(simulation.now)")
            }
            let loop = simulation.loop
            loop.task {
                try await Task.sleep(for: .seconds(3600))
                log("task of the loop \(simulation.now)")
            }
            let cancelled = loop.task { try await Task.sleep(for: .seconds(5)) }
            loop.perform(afterDelay: .seconds(1)) { cancelled.cancel() }
            loop.task {
                await #expect(throws: CancellationError.self) { try await cancelled.value }
                log("cancelled \(simulation.now)")
            }
            simulation.runUntilIdle()
            #expect(
                log.entries == [
                    "cancelled 1.000000000", "main actor 1.500000000", "nanoseconds 2.000000000",
                    "detached 1000.000000000", "suspending 1000.000000001", "task of the loop 3600.000000000",
                ])
            #expect(simulation.escapes.isEmpty && simulation.isReproducible)
        }
    }

    @Test("a sleep that lasts beyond its simulation ends outside of it")
    func sleepsBeyond() async {
        let (ends, end) = AsyncStream.makeStream(of: Bool.self)
        func run() {
            withSimulation { simulation in
                simulation.captureExecutors()
                Task.detached {
                    try? await Task.sleep(for: .seconds(1_000_000))
                    end.yield(Task.isCancelled)
                    end.finish()
                }
                simulation.advance(by: .seconds(1))
            }
        }
        run()
        for await isCancelled in ends { #expect(!isCancelled) }
    }

    @Test("simulations on several threads, and threads without one, keep their own tasks")
    func parallel() async {
        let count = 8
        let logs = (0..<count).map { _ in Log<String>() }
        let threads = logs.map { log in
            PlainThread {
                for _ in 0..<50 {
                    withSimulation { simulation in
                        simulation.captureExecutors()
                        let clock = simulation.loop.clock
                        Task {
                            for _ in 0..<5 {
                                try await clock.sleep(for: .seconds(1))
                                log("\(simulation.now)")
                            }
                        }
                        simulation.advance(by: .seconds(6))
                        if !simulation.escapes.isEmpty { log("\(simulation.escapes)") }
                    }
                }
            }
        }
        // Outside, at the same time.
        let sum = await withTaskGroup { group in
            for number in 0..<1000 {
                group.addTask {
                    await Task.yield(); return number
                }
            }
            return await group.reduce(0, +)
        }
        for thread in threads { thread.join() }
        #expect(sum == 499_500)
        let expected = (0..<50).flatMap { _ in (1...5).map { "\($0).000000000" } }
        for log in logs { #expect(log.entries == expected) }
    }

    @Test("tasks that still wait when the simulation ends continue outside")
    func ends() async {
        let log = Log<String>()
        func begin() -> Task<Void, Never> {
            withSimulation { simulation in
                simulation.captureExecutors()
                let clock = simulation.loop.clock
                let task = Task {
                    do { try await clock.sleep(for: .seconds(100)) } catch { log("\(error)") }
                    await Task.yield()
                }
                simulation.advance(by: .seconds(1))
                return task
            }
        }
        await begin().value
        #expect(log.entries.count == 1 && log.entries[0].contains("ended"), "\(log.entries)")
    }

    private actor Tally {
        private var count = 0

        func add() -> Int {
            count += 1
            return count
        }
    }
}

@MainActor private var mainCount = 0

@MainActor private func countOnMain() -> Int {
    MainActor.assertIsolated()
    mainCount += 1
    return mainCount
}

@Suite("Capturing the main actor", .serialized)
struct MainActorCaptureTests {
    @Test("the main actor's jobs run on the main loop of the simulation, where its isolation holds")
    func captured() {
        withSimulation { simulation in
            simulation.captureExecutors()
            let log = Log<String>()
            let (clock, thread) = (simulation.loop.clock, pthread_self())
            Task.detached {
                let first = await countOnMain()
                try? await clock.sleep(for: .seconds(1))
                let second = await countOnMain()
                log("\(second - first) more at \(simulation.now)")
            }
            Task { @MainActor in
                try? await clock.sleep(for: .seconds(2))
                log("isolated on its thread: \(pthread_self() == thread) at \(simulation.now)")
            }
            simulation.loop.perform(afterDelay: .seconds(3)) {
                log("a handler is isolated: \(MainActor.assumeIsolated { mainCount > 0 })")
            }
            #expect(simulation.runUntilIdle() == .done)
            #expect(
                log.entries == [
                    "1 more at 1.000000000", "isolated on its thread: true at 2.000000000",
                    "a handler is isolated: true",
                ])
        }
    }

    @Test("outside of simulations the main actor's jobs run as before, and its isolation holds")
    func outside() async {
        capture()
        let before = await countOnMain()
        let after = await Task.detached { await countOnMain() }.value
        #expect(after == before + 1)
    }

    private func capture() {
        withSimulation { $0.captureExecutors() }
    }
}
