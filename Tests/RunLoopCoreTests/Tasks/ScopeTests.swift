import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

/// The error of a body or a task.
struct Refusal: Error, Equatable {
    var number = 0
}

@Suite("Scopes of tasks")
struct ScopeTests {
    /// Runs a task on virtual time, to its end.
    ///
    /// - Returns: the result of the task, and its time.
    private func outcome<Success: Sendable>(
        cancelledAt date: RunLoop.Instant = .distantFuture, _ operation: @escaping (RunLoop) async throws -> Success
    ) -> (result: Result<Success, any Error>?, end: RunLoop.Instant) {
        withSimulation { simulation in
            let loop = simulation.loop
            var ended: (Result<Success, any Error>, RunLoop.Instant)?
            let task = loop.task(
                { try await operation(loop) },
                then: { ended = ($0, loop.now) })
            if date < .distantFuture { loop.perform(at: date) { task.cancel() } }
            #expect(simulation.runUntilIdle() == .done)
            return (ended?.0, ended?.1 ?? .distantFuture)
        }
    }

    private func error(of result: Result<some Any, any Error>?) -> (any Error)? {
        if case .failure(let error)? = result { error } else { nil }
    }

    @Test("a body that ends in time is as if there were no limit")
    func inTime() throws {
        let (result, end) = outcome { loop in
            try await loop.withTimeout(.seconds(5)) {
                try await loop.clock.sleep(for: .seconds(2))
                return "done"
            }
        }
        #expect(try result?.get() == "done" && end == seconds(2))
        let failed = outcome { loop in try await loop.withTimeout(.seconds(5)) { throw Refusal(number: 1) } }
        #expect(error(of: failed.result) as? Refusal == Refusal(number: 1))
    }

    @Test("a body that takes longer is cancelled at the deadline, and the error names deadline and place")
    func late() throws {
        let line = UInt32(#line + 1)
        let (result, end) = outcome { try await late($0, .seconds(5)) }
        func late(_ loop: RunLoop, _ limit: Duration) async throws {
            try await loop.withTimeout(
                limit, { try await loop.clock.sleep(for: .seconds(1000)) }, file: "App/main.swift", line: line)
        }
        let timeout = try #require(error(of: result) as? RunLoop.TimeoutError)
        #expect(end == seconds(5) && timeout.deadline == seconds(5))
        #expect("\(timeout)" == "the deadline 5.000000000 of the scope at App/main.swift:\(line) has passed")
    }

    @Test("a deadline that has passed cancels the body before it begins, which runs all the same")
    func passed() {
        let (result, end) = outcome { loop in
            try await loop.clock.sleep(for: .seconds(7))
            var words: [String] = []
            do {
                try await loop.withDeadline(seconds(7)) {
                    words.append("cancelled \(Task.isCancelled)")
                    try await loop.clock.sleep(for: .seconds(1))
                }
            } catch { words.append("\(type(of: error))") }
            return words
        }
        #expect((try? result?.get()) == ["cancelled true", "TimeoutError"] && end == seconds(7))
    }

    @Test("of two nested deadlines, the first to pass throws, from its own scope alone")
    func nested() {
        for (outer, inner, expected) in [
            (5.0, 3.0, "inner TimeoutError 3"), (3, 5, "inner CancellationError 3, outer TimeoutError 3"),
            (3, 3, "inner CancellationError 3, outer TimeoutError 3"),
        ] {
            let (result, _) = outcome { loop in
                var words: [String] = []
                do {
                    try await loop.withDeadline(seconds(outer)) {
                        do {
                            try await loop.withDeadline(seconds(inner)) {
                                try await loop.clock.sleep(for: .seconds(1000))
                            }
                        } catch {
                            words.append("inner \(type(of: error)) \(loop.now.nanoseconds / 1_000_000_000)")
                            if error is CancellationError { throw error }
                        }
                    }
                } catch { words.append("outer \(type(of: error)) \(loop.now.nanoseconds / 1_000_000_000)") }
                return words.joined(separator: ", ")
            }
            #expect((try? result?.get()) == expected)
        }
    }

    @Test("of the reasons that there are when the body has ended, the outermost counts")
    func outermost() {
        func deaf(_ loop: RunLoop) async throws {
            await rest(.seconds(5), on: loop)
            try Task.checkCancellation()
        }
        let caller = outcome(cancelledAt: seconds(3)) { loop in
            try await loop.withTimeout(.seconds(1)) { try await deaf(loop) }
        }
        #expect(error(of: caller.result) is CancellationError && caller.end == seconds(5))
        let limits = outcome { loop in
            try await loop.withTimeout(.seconds(2)) {
                await #expect(throws: CancellationError.self) {
                    try await loop.withTimeout(.seconds(1)) { try await deaf(loop) }
                }
                try Task.checkCancellation()
            }
        }
        #expect((error(of: limits.result) as? RunLoop.TimeoutError)?.deadline == seconds(2))
        let failed = outcome(cancelledAt: seconds(3)) { loop in
            try await loop.withTimeout(.seconds(1)) {
                await rest(.seconds(5), on: loop)
                throw Refusal(number: 5)
            }
        }
        #expect(error(of: failed.result) as? Refusal == Refusal(number: 5))
    }

    @Test("the task that waits for a value gets the error of that task, and not the cancellation that it brings")
    func failingValue() {
        let (result, _) = outcome { loop in
            try await loop.withTasks { tasks in
                let child = tasks.start { () -> Int in
                    try await loop.clock.sleep(for: .seconds(1))
                    throw Refusal(number: 6)
                }
                for _ in 1...2 { await #expect(throws: Refusal(number: 6)) { try await child.value } }
                #expect(Task.isCancelled)
            }
        }
        #expect(error(of: result) as? Refusal == Refusal(number: 6))
    }

    @Test("a deadline that passes while the body computes ends its next wait, even one that would take no time")
    func computing() {
        withSimulation { simulation in
            let loop = simulation.loop
            let limiter = RateLimiter(RateLimit(interval: .seconds(1), burst: 9), on: loop)
            let waits: [() async throws -> Void] = [
                { try await loop.clock.sleep(for: .zero) }, { try await loop.clock.sleep(for: .seconds(1)) },
                { try await limiter.acquire() },
                { try await loop.withTimeout(.seconds(9)) { try Task.checkCancellation() } },
            ]
            var errors: [any Error] = []
            loop.task {
                for wait in waits {
                    do {
                        try await loop.withTasks(until: loop.now + .seconds(1)) { _ in
                            await #expect(throws: CancellationError.self) {
                                try await loop.withTimeout(.seconds(2)) {
                                    simulation.spend(.seconds(4))
                                    try await wait()
                                }
                            }
                            try Task.checkCancellation()
                        }
                    } catch { errors.append(error) }
                }
            }
            #expect(simulation.runUntilIdle() == .done && simulation.now == seconds(16))
            #expect(errors.compactMap { ($0 as? RunLoop.TimeoutError)?.deadline } == [1, 5, 9, 13].map(seconds))
        }
    }

    @Test("a deadline further out that has passed when a scope returns counts, although the loop has not come to it")
    func passedAtReturn() {
        withSimulation { simulation in
            let loop = simulation.loop
            var errors: [any Error] = []
            // The clock is not read between the third job of a turn and the fourth: here the loop reaches no timer.
            loop.task { await rest(.seconds(5), on: loop) }
            loop.task {
                try await loop.withTimeout(.seconds(6)) {
                    do {
                        try await loop.withTimeout(.seconds(1)) {
                            await rest(.seconds(5), on: loop)
                            try Task.checkCancellation()
                        }
                    } catch {
                        errors.append(error)
                        throw error
                    }
                }
            } then: {
                if case .failure(let error) = $0 { errors.append(error) }
            }
            loop.task {
                await rest(.seconds(1), on: loop)
                await rest(.seconds(4), on: loop)
                simulation.spend(.seconds(3))
            }
            #expect(simulation.runUntilIdle() == .done)
            #expect(errors.first is CancellationError)
            #expect((errors.last as? RunLoop.TimeoutError)?.deadline == seconds(6))
        }
    }

    @Test("a body that computes past its deadline and throws has been cut short; its value is not lost")
    func computedError() {
        withSimulation { simulation in
            let loop = simulation.loop
            var words: [String] = []
            loop.task {
                let value = try await loop.withTimeout(.seconds(1)) {
                    simulation.spend(.seconds(2))
                    return "late"
                }
                words.append(value)
                try await loop.withTimeout(.seconds(1)) {
                    simulation.spend(.seconds(2))
                    throw Refusal(number: 7)
                }
            } then: {
                if case .failure(let error) = $0 { words.append("\(type(of: error))") }
            }
            #expect(simulation.runUntilIdle() == .done)
            #expect(words == ["late", "TimeoutError"])
        }
    }

    @Test("an inner deadline that is set again later than the outer one still gives way to it at the same instant")
    func tie() {
        let (result, _) = outcome { loop in
            var words: [String] = []
            do {
                try await loop.withTasks(until: seconds(100)) { outer in
                    do {
                        try await loop.withDeadline(seconds(3)) {
                            // Armed after the inner one.
                            outer.deadline = seconds(3)
                            try await loop.clock.sleep(for: .seconds(1000))
                        }
                    } catch {
                        words.append("inner \(type(of: error))")
                        throw error
                    }
                }
            } catch { words.append("outer \(type(of: error))") }
            return words
        }
        #expect((try? result?.get()) == ["inner CancellationError", "outer TimeoutError"])
    }

    @Test("a cancellation from outside passes through as a CancellationError")
    func outside() {
        let (result, end) = outcome(cancelledAt: seconds(2)) { loop in
            try await loop.withTimeout(.seconds(5)) {
                try await loop.withTasks { tasks in
                    tasks.start { try await loop.clock.sleep(for: .seconds(1000)) }
                    try await loop.clock.sleep(for: .seconds(1000))
                }
            }
        }
        #expect(error(of: result) is CancellationError && end == seconds(2))
    }

    @Test("a body that ignores its cancellation is waited for, and its value is not lost")
    func stubborn() {
        let (result, end) = outcome { loop in
            try await loop.withTimeout(.seconds(1)) {
                await rest(.seconds(9), on: loop)
                return "late"
            }
        }
        #expect((try? result?.get()) == "late" && end == seconds(9))
        let cut = outcome { loop in
            try await loop.withTasks(until: seconds(1)) { tasks in
                tasks.start { await rest(.seconds(9), on: loop) }
                try await loop.clock.sleep(for: .seconds(2))
            }
        }
        #expect(error(of: cut.result) is RunLoop.TimeoutError && cut.end == seconds(9))
    }

    @Test("an error that a body throws after its deadline is kept in the timeout error")
    func underlying() throws {
        let (result, _) = outcome { loop in
            try await loop.withTimeout(.seconds(1)) {
                do { try await loop.clock.sleep(for: .seconds(2)) } catch { throw Refusal(number: 4) }
            }
        }
        let timeout = try #require(error(of: result) as? RunLoop.TimeoutError)
        #expect(timeout.underlying as? Refusal == Refusal(number: 4))
    }

    @Test("tasks share the caller's variables, and the scope returns when all have ended")
    func structured() {
        let (result, end) = outcome { loop in
            var words: [String] = []
            let count = try await loop.withTasks { tasks in
                for number in 1...3 {
                    tasks.start(name: "counter") {
                        try await loop.clock.sleep(for: .seconds(number))
                        words.append("\(number)")
                        if number == 1 { tasks.start { words.append("started by 1") } }
                    }
                }
                words.append("body")
                return words.count
            }
            return words + ["\(count)"]
        }
        #expect((try? result?.get()) == ["body", "1", "started by 1", "2", "3", "1"] && end == seconds(3))
    }

    @Test("the first error cancels the others, the body too, and is thrown when they have ended")
    func failure() {
        let (result, end) = outcome { loop in
            try await loop.withTasks { tasks in
                tasks.start {
                    try await loop.clock.sleep(for: .seconds(2))
                    throw Refusal(number: 1)
                }
                tasks.start {
                    do { try await loop.clock.sleep(for: .seconds(1000)) } catch {
                        await rest(.seconds(3), on: loop)
                        throw Refusal(number: 2)
                    }
                }
                try await loop.clock.sleep(for: .seconds(1000))
            }
        }
        #expect(error(of: result) as? Refusal == Refusal(number: 1) && end == seconds(5))
    }

    @Test("a scope that the program cancels returns its body's result")
    func cancelled() {
        let (result, end) = outcome { loop in
            try await loop.withTasks { tasks in
                tasks.start { try await loop.clock.sleep(for: .seconds(1000)) }
                tasks.start {
                    try await loop.clock.sleep(for: .seconds(4))
                    tasks.cancel()
                    #expect(tasks.isCancelled && Task.isCancelled)
                    tasks.start {
                        #expect(Task.isCancelled)
                        try await loop.clock.sleep(for: .seconds(1000))
                    }
                }
                return "served"
            }
        }
        #expect((try? result?.get()) == "served" && end == seconds(4))
        let body = outcome { loop in
            try await loop.withTasks { tasks in
                loop.perform(afterDelay: .seconds(2)) { tasks.cancel() }
                try await loop.clock.sleep(for: .seconds(1000))
            }
        }
        #expect(error(of: body.result) is CancellationError && body.end == seconds(2))
    }

    @Test("an error that comes after the program's cancellation is thrown")
    func failureAfterCancel() {
        let (result, _) = outcome { loop in
            try await loop.withTasks { tasks in
                tasks.start { do { try await loop.clock.sleep(for: .seconds(9)) } catch { throw Refusal(number: 3) } }
                try await loop.clock.sleep(for: .seconds(1))
                tasks.cancel()
            }
        }
        #expect(error(of: result) as? Refusal == Refusal(number: 3))
    }

    @Test("a deadline moves as long as it has not passed")
    func moved() {
        let (result, end) = outcome { loop in
            try await loop.withTasks(until: seconds(2)) { tasks in
                for _ in 1...3 {
                    try await loop.clock.sleep(for: .seconds(1))
                    tasks.deadline = loop.now + .seconds(2)
                }
                defer { tasks.deadline = .distantFuture }
                try await loop.clock.sleep(for: .seconds(1000))
            }
        }
        #expect((error(of: result) as? RunLoop.TimeoutError)?.deadline == seconds(5) && end == seconds(5))
    }

    @Test("a task gives its value to every waiter, and a task cancelled alone fails no other")
    func values() {
        let (result, end) = outcome { loop in
            try await loop.withTasks { tasks in
                let number = tasks.start {
                    try await loop.clock.sleep(for: .seconds(2))
                    return 20
                }
                let other = tasks.start {
                    try await loop.clock.sleep(for: .seconds(1000))
                    return 1
                }
                tasks.start {
                    let value = try await number.value
                    #expect(value == 20)
                }
                loop.perform(afterDelay: .seconds(3)) { other.cancel() }
                let sum = try await number.value + number.value
                await #expect(throws: CancellationError.self) { try await other.value }
                return sum
            }
        }
        #expect((try? result?.get()) == 40 && end == seconds(3))
    }

    @Test("the body and the tasks run in the modes of the calling task, and so does the deadline")
    func modes() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.task(inModes: .default) {
                try await loop.withTimeout(.seconds(1)) { try await loop.clock.sleep(for: .seconds(1000)) }
            } then: { _ in
                log("\(simulation.now) in \(loop.currentMode?.name ?? "-")")
            }
            simulation.drag(from: ms(500), until: seconds(5))
            simulation.advance(by: .seconds(10))
            #expect(log.entries == ["5.000000000 in \(RunLoop.Mode.default.name)"])
        }
    }

    @Test("the end of the loop ends everything in a scope, with an error that names the loop")
    func loopEnds() async {
        let log = Log<String>()
        let thread = LoopThread(name: "short") { loop in
            loop.task {
                try await loop.withTasks(until: loop.now + .seconds(1000)) { tasks in
                    let other = tasks.start {
                        try await loop.clock.sleep(for: .seconds(1000))
                        return 1
                    }
                    tasks.start { log("value \(await result { try await other.value })") }
                    try await loop.clock.sleep(for: .seconds(1000))
                }
            } then: {
                log("\($0)")
            }
            loop.perform(afterDelay: .milliseconds(2)) { loop.stop() }
        }
        await thread.ended()
        let failure = "failure(the run loop \"short\" has ended)"
        #expect(log.entries == ["value \(failure)", failure])
    }

    @Test("a task of a scope that is left over at the end of the loop is waited for elsewhere")
    func leftOver() async throws {
        let (mayGoOn, log) = (Flag(), Log<String>())
        let thread = LoopThread(name: "short") { loop in
            loop.task {
                try await loop.withTasks { tasks in
                    tasks.start {
                        await Task.detached { try? await comesTrue { mayGoOn.isSet } }.value
                        log("task")
                    }
                }
                log("scope")
            }
            loop.perform(afterDelay: .milliseconds(1)) { RunLoop.current.stop() }
        }
        await thread.ended()
        #expect(log.entries.isEmpty)
        mayGoOn.set()
        try await comesTrue { log.entries == ["task", "scope"] }
    }

    @Test("on real time, too, a limit never comes early")
    func realTime() async throws {
        let start = ContinuousClock.now
        await #expect(throws: RunLoop.TimeoutError.self) {
            try await withLoop { loop in
                try await loop.withTimeout(.milliseconds(16)) { try await loop.clock.sleep(for: .seconds(1000)) }
            }
        }
        #expect(ContinuousClock.now - start >= .milliseconds(16))
    }

    @Test("starting a task in a scope that has ended traps with a sentence")
    func tooLate() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try await withLoop { loop in
                let tasks = try await loop.withTasks { $0 }
                tasks.start {}
            }
        }
        #expect(says("a task was started in the scope of", result))
    }
}

/// Waits, even if the task is cancelled.
nonisolated(nonsending) func rest(_ duration: Duration, on loop: RunLoop) async {
    await withUnsafeContinuation { continuation in loop.perform(afterDelay: duration) { continuation.resume() } }
}

private nonisolated(nonsending) func result<Success>(
    of body: nonisolated(nonsending) () async throws -> Success
) async -> Result<Success, any Error> {
    do { return .success(try await body()) } catch { return .failure(error) }
}
