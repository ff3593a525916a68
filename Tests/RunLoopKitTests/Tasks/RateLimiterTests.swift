import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("Rate limiters")
struct RateLimiterTests {
    @Test("tasks pass in the order in which they came, no more of them than the limit in any interval")
    func order() {
        withSimulation { simulation in
            let loop = simulation.loop
            let limiter = RateLimiter(RateLimit(interval: .seconds(10), burst: 2), on: loop)
            var words: [String] = []
            for (number, delay) in [0, 9, 9, 9, 9].enumerated() {
                loop.task {
                    try await loop.clock.sleep(for: .seconds(delay))
                    try await limiter.acquire()
                    words.append("\(number)@\(loop.now.nanoseconds / 1_000_000_000)")
                }
            }
            #expect(simulation.runUntilIdle() == .done)
            // An interval that begins with the first pass would let 2 and 3 pass together.
            #expect(words == ["0@0", "1@9", "2@10", "3@19", "4@20"])
        }
    }

    @Test("a cancelled wait takes nothing and throws at once; a task that was cancelled before takes nothing either")
    func cancelled() {
        withSimulation { simulation in
            let loop = simulation.loop
            let limiter = RateLimiter(RateLimit(interval: .seconds(10), burst: 1), on: loop)
            var words: [String] = []
            loop.task { try await limiter.acquire() }
            let waiting = loop.task {
                try await limiter.acquire()
            } then: {
                words.append("\($0) \(loop.now)")
            }
            loop.task {
                try await limiter.acquire()
                words.append("next \(loop.now)")
            }
            loop.perform(afterDelay: .seconds(3)) { waiting.cancel() }
            loop.task { try await limiter.acquire() }.cancel()
            #expect(simulation.runUntilIdle() == .done)
            #expect(words == ["failure(Swift.CancellationError()) 3.000000000", "next 10.000000000"])
        }
    }

    @Test("when nobody waits any more, nothing is scheduled")
    func idle() {
        withSimulation { simulation in
            let loop = simulation.loop
            let limiter = RateLimiter(RateLimit(interval: .seconds(1000), burst: 1), on: loop)
            loop.task { try await limiter.acquire() }
            let waiting = loop.task { try await limiter.acquire() }
            loop.perform(afterDelay: .seconds(3)) { waiting.cancel() }
            #expect(simulation.runUntilIdle() == .done)
            #expect(simulation.now == seconds(3))
            loop.checkInvariants()
        }
    }

    @Test("a pass counts from when its task is resumed, however late that is")
    func lateTasks() {
        withSimulation { simulation in
            let loop = simulation.loop
            let limiter = RateLimiter(RateLimit(interval: .seconds(10), burst: 2), on: loop)
            var dates: [RunLoop.Instant] = []
            for _ in 0..<6 {
                loop.task {
                    try await limiter.acquire()
                    dates.append(loop.now)
                    // The other task of the pair is resumed after this work.
                    simulation.spend(.seconds(8))
                }
            }
            #expect(simulation.runUntilIdle() == .done)
            for (first, third) in zip(dates, dates.dropFirst(2)) { #expect(third - first >= .seconds(10)) }
            #expect(dates.count == 6)
        }
    }

    @Test("the end of the loop ends the waits, also of tasks that are not the loop's own")
    func loopEnds() async {
        let log = Log<String>()
        let thread = LoopThread(name: "short") { loop in
            let limiter = RateLimiter(RateLimit(interval: .seconds(1000), burst: 1), on: loop)
            let bound = LoopBound(limiter, loop: loop)
            for _ in 0..<3 {
                Task(executorPreference: loop.remote.executor().task) {
                    do {
                        try await bound.value.acquire()
                        log("passed")
                    } catch { log("\(error)") }
                }
            }
            loop.perform(afterDelay: .milliseconds(5)) { loop.stop() }
        }
        await thread.ended()
        let ended = "the run loop \"short\" has ended"
        #expect(log.entries == ["passed", ended, ended])
    }

    @Test("random tasks pass as soon as the rule allows, and not before")
    func model() {
        for seed in UInt64(0)..<UInt64(amount(of: "LIMITER_PROGRAMS", usually: 300)) {
            var random = SeededGenerator(seed: seed)
            let limit = RateLimit(
                interval: .nanoseconds(Int64.random(in: 1...20_000_000_000, using: &random)),
                burst: Int.random(in: 1...5, using: &random))
            var now = seconds(0)
            let tasks = (0..<40).map { _ in
                now = now + .nanoseconds(Int64.random(in: 1...4_000_000_000, using: &random))
                let isCancelled = Int.random(in: 0..<3, using: &random) == 0
                return Arrival(
                    date: now,
                    cancelledAt: isCancelled
                        ? now + .nanoseconds(Int64.random(in: 1...30_000_000_000, using: &random)) : .distantFuture)
            }
            #expect(run(tasks, limit) == expected(tasks, limit), "seed \(seed)")
        }
    }

    private struct Arrival {
        let date, cancelledAt: RunLoop.Instant
    }

    /// When each of them passes; `nil` if it is cancelled before.
    private func run(_ tasks: [Arrival], _ limit: RateLimit) -> [RunLoop.Instant?] {
        withSimulation { simulation in
            let loop = simulation.loop
            let limiter = RateLimiter(limit, on: loop)
            var passes = [RunLoop.Instant?](repeating: nil, count: tasks.count)
            for (number, task) in tasks.enumerated() {
                loop.task {
                    try await loop.clock.sleep(until: task.date)
                    try await loop.withDeadline(task.cancelledAt) {
                        try await limiter.acquire()
                        passes[number] = loop.now
                    }
                }
            }
            #expect(simulation.runUntilIdle() == .done)
            return passes
        }
    }

    private func expected(_ tasks: [Arrival], _ limit: RateLimit) -> [RunLoop.Instant?] {
        var passes: [RunLoop.Instant] = []
        // No task passes before those in front of it.
        var front = RunLoop.Instant.distantPast
        return tasks.map { task in
            var date = max(task.date, front)
            if passes.count >= limit.burst { date = max(date, passes[passes.count - limit.burst] + limit.interval) }
            guard date < task.cancelledAt else {
                front = max(front, task.cancelledAt)
                return nil
            }
            passes.append(date)
            front = date
            return date
        }
    }
}
