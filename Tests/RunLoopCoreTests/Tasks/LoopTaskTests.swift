import Glibc
@_spi(Ports) import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@TaskLocal private var label = "none"

@Suite("Tasks of a loop")
struct LoopTaskTests {
    @Test("a task and its then block use values that belong to the loop's thread")
    func captures() {
        withSimulation { simulation in
            let loop = simulation.loop
            var words: [String] = []
            loop.task {
                words.append("begins")
                try await loop.clock.sleep(for: .seconds(2))
                words.append("sleeps until \(loop.now)")
                return words.count
            } then: { (result: Result<Int, any Error>) in
                words.append("then \(result)")
            }
            #expect(words.isEmpty)
            simulation.runUntilIdle()
            #expect(words == ["begins", "sleeps until 2.000000000", "then success(2)"])
        }
    }

    @Test("a task keeps its modes from being empty until it has ended")
    func keepsAlive() {
        withSimulation { simulation in
            let loop = simulation.loop
            let other = LoopThread { other in
                other.perform(afterDelay: .seconds(5)) {}
            }
            loop.task { await other.ended() }
            #expect(loop.run(in: .default, until: simulation.now + .seconds(100)) == .finished)
            #expect(simulation.now == RunLoop.Instant(nanoseconds: 5_000_000_000))
        }
    }

    @Test("the end of a loop cancels its tasks, and their waits end with an error that names it")
    func loopEnds() async {
        let log = Log<String>()
        let thread = LoopThread(name: "short") { loop in
            loop.task {
                try await loop.clock.sleep(for: .seconds(1000))
            } then: {
                log("\($0)")
            }
            loop.task {
                while !Task.isCancelled { await Task.yield() }
                log("cancelled")
            }
            loop.perform(afterDelay: .milliseconds(2)) { loop.stop() }
        }
        await thread.ended()
        thread.stop()
        #expect(log.entries.sorted() == ["cancelled", "failure(the run loop \"short\" has ended)"])
    }

    @Test(
        "a task that waits for a completion that ends with the loop receives an error, regardless of its keeper",
        arguments: ["timer", "delayed call", "block", "mail", "local"])
    func keptByTheLoop(_ keeper: String) async {
        let log = Log<String>()
        let thread = LoopThread(name: "short") { loop in
            loop.task {
                try await loop.awaitCompletion { (completion: @escaping (Int) -> Void) in
                    nonisolated(unsafe) let completion = completion
                    switch keeper {
                    case "timer": loop.add(Timer(at: .distantFuture) { _ in completion(1) }, forMode: .default)
                    case "delayed call": loop.perform(at: .distantFuture) { completion(1) }
                    case "block": loop.perform(inModes: "never") { completion(1) }
                    case "mail":
                        let remote = loop.remote
                        loop.stop()
                        onThread { _ = remote.perform(inModes: "never") { _ in completion(1) } }
                    default: loop[Self.kept] = completion
                    }
                    return {}
                }
            } then: {
                log("\($0)")
            }
            loop.perform(afterDelay: .milliseconds(2)) { loop.stop() }
        }
        thread.stop()
        await thread.ended()
        #expect(log.entries == ["failure(the run loop \"short\" has ended)"])
    }

    private static let kept = RunLoop.Local<((Int) -> Void)?> { _ in nil }

    @Test("tasks, timers and sources that a task starts or schedules as the loop ends are ended too")
    func startedAtTheEnd() async {
        let log = Log<String>()
        let thread = LoopThread(name: "short") { loop in
            loop.task {
                while !Task.isCancelled { await Task.yield() }
                let inner = loop.task {
                    try await loop.clock.sleep(for: .seconds(1000))
                } then: {
                    log("\($0)")
                }
                _ = await inner.result
                log("\(schedule(on: loop))")
            } then: {
                log("\($0)")
            }
        }
        thread.stop()
        await thread.ended()
        #expect(log.entries == ["failure(the run loop \"short\" has ended)", "[false, false]", "success()"])

        /// - Returns: for each scheduled item, `true` if it is valid.
        @Sendable func schedule(on loop: RunLoop) -> [Bool] {
            let (timer, source) = (Timer(timeInterval: .seconds(1), repeats: true) { _ in }, CustomSource())
            loop.add(timer, forMode: .common)
            loop.add(source, forMode: .common)
            return [timer.isValid, source.isValid]
        }
    }

    @Test("the rest of a task continues elsewhere when its loop has ended")
    func leftOver() async throws {
        let (mayGoOn, isGoingOn) = (Flag(), Flag())
        let thread = LoopThread(name: "short") { loop in
            loop.task {
                await Task.detached { try? await comesTrue { mayGoOn.isSet } }.value
                isGoingOn.set()
            }
            loop.perform(afterDelay: .milliseconds(1)) { RunLoop.current.stop() }
        }
        thread.stop()
        await thread.ended()
        mayGoOn.set()
        try await comesTrue { isGoingOn.isSet }
    }

    @Test("a thread ends though a task of its loop continues elsewhere for ever")
    func goesOn() async throws {
        let (mayEnd, hasEnded) = (Flag(), Flag())
        let thread = LoopThread(name: "short") { loop in
            loop.task {
                while !mayEnd.isSet {
                    await Task.yield()
                    try? await loop.clock.sleep(for: .seconds(1000))
                }
                hasEnded.set()
            }
            loop.perform(afterDelay: .milliseconds(1)) { RunLoop.current.stop() }
        }
        thread.stop()
        await thread.ended()
        #expect(!hasEnded.isSet)
        mayEnd.set()
        try await comesTrue { hasEnded.isSet }
    }

    @Test("code for a loop that has ended is refused where its task is, and stays in the simulation")
    func runAfterEnd() {
        withSimulation { simulation in
            let gone = LoopThread(name: "gone") { _ in }
            gone.join()
            let log = Log<String>()
            simulation.loop.task {
                do { try await gone.remote.run { _ in log("ran") } } catch { log("\(error)") }
                log("\(RunLoop.installed === simulation.loop)")
            }
            #expect(simulation.runUntilIdle() == .done)
            #expect(log.entries == ["\(RunLoop.WaitError.loopEnded(loop: "gone"))", "true"])
            #expect(simulation.escapes.isEmpty && simulation.isReproducible)
        }
    }

    @Test("code is run on a loop by the calling task, with its locals, and its result returned")
    func run() async throws {
        let thread = idleThread(named: "home")
        let values = try await $label.withValue("mine") {
            try await thread.remote.run { loop in [loop.name ?? "-", label, RunLoop.installed?.name ?? "-"] }
        }
        #expect(values == ["home", "mine", "home"])
        #expect(RunLoop.installed?.name != "home")
        struct Refusal: Error {}
        await #expect(throws: Refusal.self) { try await thread.remote.run { _ in throw Refusal() } }
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await thread.remote.run { _ in Issue.record("a cancelled task ran") }
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        thread.stop()
        await thread.ended()
        await #expect(throws: RunLoop.WaitError.loopEnded(loop: "home")) { try await thread.remote.run { _ in } }
    }

    @Test("a loop that ends while code is on its way runs it or says that it has ended")
    func runRace() async {
        let (ran, refused) = (Counter(), Counter())
        for _ in 0..<300 {
            let thread = idleThread()
            async let stop: Void = thread.stop()
            do {
                try await thread.remote.run { _ in }
                ran.add()
            } catch {
                #expect(error as? RunLoop.WaitError == .loopEnded(loop: "idle"))
                refused.add()
            }
            await stop
            await thread.ended()
        }
        #expect(ran.value + refused.value == 300)
    }

    @Test("a loop of one's own lives as long as the code that uses it, and its tasks end with it")
    func structured() async throws {
        let log = Log<String>()
        let answer = try await withLoop(name: "own") { loop in
            loop.task {
                do {
                    try await loop.clock.sleep(for: .seconds(1000))
                } catch {
                    // A task started by one that ends is ended too.
                    loop.task {
                        try await loop.clock.sleep(for: .seconds(1000))
                    } then: {
                        log("inner \($0)")
                    }
                    log("outer \(error)")
                }
            }
            try await loop.clock.sleep(for: .milliseconds(1))
            log(loop.name ?? "-")
            return 42
        }
        #expect(answer == 42)
        #expect(log.entries == ["own", "outer CancellationError()", "inner failure(Swift.CancellationError())"])
    }

    @Test("a loop of one's own on an actor, with an error")
    func structuredFails() async {
        struct Refusal: Error {}
        let host = Host()
        await #expect(throws: Refusal.self) { try await host.use { throw Refusal() } }
        let task = Task { try await withLoop { try await $0.clock.sleep(for: .seconds(1000)) } }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    private actor Host {
        func use(_ body: @escaping @Sendable () throws -> Void) async throws {
            try await withLoop { _ in try body() }
            preconditionIsolated()
        }
    }

    @Test("a pool of threads can be waited for")
    func pool() async {
        let pool = LoopThreadPool(name: "pool", maximumThreads: 2)
        pool.stop()
        await pool.ended()
    }
}
