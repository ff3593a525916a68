@_spi(Ports) import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

/// A line of tasks before a limiter, which lets two of them pass in ten seconds.
private final class Line {
    /// The names of the tasks that have passed, each with the second, for example `waiter@10`.
    private(set) var passes: [String] = []
    private let loop: RunLoop
    private let limiter: RateLimiter

    init(on loop: RunLoop) {
        self.loop = loop
        limiter = RateLimiter(RateLimit(interval: .seconds(10), burst: 2), on: loop)
    }

    func add(_ name: String, after delay: Int, inModes modes: RunLoop.Modes = .common) {
        loop.task(inModes: modes) { [self] in
            try await loop.clock.sleep(for: .seconds(delay))
            try await limiter.acquire()
            passes.append("\(name)@\(loop.now.nanoseconds / 1_000_000_000)")
        }
    }
}

@Suite("Rate limiters")
struct RateLimiterTests {
    @Test("tasks pass in the order in which they came, no more of them than the limit in any interval")
    func order() {
        withSimulation { simulation in
            let line = Line(on: simulation.loop)
            for (number, delay) in [0, 9, 9, 9, 9].enumerated() { line.add("\(number)", after: delay) }
            #expect(simulation.runUntilIdle() == .done)
            // An interval that begins with the first pass would let 2 and 3 pass together.
            #expect(line.passes == ["0@0", "1@9", "2@10", "3@19", "4@20"])
        }
    }

    @Test("a task that comes when others may pass, and have not been resumed, passes after them")
    func newcomer() {
        withSimulation { simulation in
            let line = Line(on: simulation.loop)
            for _ in 1...2 { line.add("", after: 0) }
            // The newcomer's sleep ends just before the alarm that lets the waiter pass.
            line.add("newcomer", after: 10)
            line.add("waiter", after: 1)
            #expect(simulation.runUntilIdle() == .done)
            #expect(line.passes == ["@0", "@0", "waiter@10", "newcomer@10"])
        }
    }

    @Test("a task that rests in its mode keeps its place, and those behind it wait for it")
    func resting() {
        withSimulation { simulation in
            let line = Line(on: simulation.loop)
            simulation.loop.addCommonMode(.tracking)
            for _ in 1...2 { line.add("", after: 0) }
            line.add("resting", after: 1, inModes: .default)
            line.add("behind", after: 2)
            line.add("newcomer", after: 12)
            simulation.drag(from: seconds(5), until: seconds(30))
            simulation.advance(by: .seconds(100))
            #expect(line.passes == ["@0", "@0", "resting@30", "behind@30", "newcomer@40"])
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

    @Test("when no task waits any more, nothing is scheduled")
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

    @Test("random tasks pass in order, as soon as the rule allows, and not before", arguments: seeds(usually: 10))
    func model(seed: UInt64) {
        for number in UInt64(0)..<20 {
            var random = SeededGenerator(seed: seed * 20 + number)
            let life = Life(&random)
            #expect(life.run().difference(from: life) == nil, "seed \(seed), number \(number): \(life)")
        }
    }

    /// The arrivals of tasks at a limiter, and drags during which tasks of the default mode rest. Most dates tie with
    /// others.
    private struct Life {
        struct Arrival {
            let date, cancelledAt: RunLoop.Instant
            let rests: Bool
        }

        let limit: RateLimit
        let tasks: [Arrival]
        let drags: [(start: RunLoop.Instant, end: RunLoop.Instant)]

        init(_ random: inout some RandomNumberGenerator) {
            let isFine = Int.random(in: 0..<4, using: &random) == 0
            func duration(upTo seconds: Int64) -> Duration {
                isFine
                    ? .nanoseconds(Int64.random(in: 1...seconds * 1_000_000_000, using: &random))
                    : .seconds(Int64.random(in: 1...seconds, using: &random))
            }
            limit = RateLimit(interval: duration(upTo: 20), burst: Int.random(in: 1...5, using: &random))
            var now = seconds(0)
            tasks = (0..<40).map { _ in
                if Int.random(in: 0..<3, using: &random) > 0 { now = now + duration(upTo: 6) }
                let isCancelled = Int.random(in: 0..<3, using: &random) == 0
                return Arrival(
                    date: now, cancelledAt: isCancelled ? now + duration(upTo: 30) : .distantFuture,
                    rests: Int.random(in: 0..<3, using: &random) == 0)
            }
            var end = seconds(0)
            drags = (0..<Int.random(in: 0...4, using: &random)).map { _ in
                // Not at the time of any other event, relative to which it would begin before or after.
                let start = end + duration(upTo: 30) + .nanoseconds(1)
                end = start + duration(upTo: 30) - .nanoseconds(1)
                return (start, end)
            }
        }

        /// Returns the time when a task that may continue from `date` runs.
        func runs(_ task: Arrival, from date: RunLoop.Instant) -> RunLoop.Instant {
            guard task.rests, let drag = drags.first(where: { $0.start < date && date < $0.end }) else { return date }
            return drag.end
        }

        func run() -> Course {
            withSimulation { simulation in
                let loop = simulation.loop
                loop.addCommonMode(.tracking)
                let limiter = RateLimiter(limit, on: loop)
                var course = Course(passes: Array(repeating: nil, count: tasks.count))
                for (number, task) in tasks.enumerated() {
                    loop.task(inModes: task.rests ? .default : .common) {
                        try await loop.clock.sleep(until: task.date)
                        try await loop.withDeadline(task.cancelledAt) {
                            course.arrivals.append((number, loop.now))
                            try await limiter.acquire()
                            course.order.append(number)
                            course.passes[number] = loop.now
                        }
                    }
                }
                for drag in drags { simulation.drag(from: drag.start, until: drag.end) }
                #expect(simulation.runUntilIdle() == .done)
                return course
            }
        }
    }

    /// The events of the tasks.
    private struct Course {
        var arrivals: [(number: Int, date: RunLoop.Instant)] = []
        var order: [Int] = []
        var passes: [RunLoop.Instant?]

        /// - Returns: the first difference from the rule, in the order in which the tasks came. If a task may pass at the
        ///   very time when it is cancelled, either is right.
        func difference(from life: Life) -> String? {
            var dates: [RunLoop.Instant] = []
            // No task passes before the tasks in front of it.
            var front = RunLoop.Instant.distantPast
            for (number, date) in arrivals {
                let task = life.tasks[number]
                var allowed = max(date, front)
                if let first = dates.suffix(life.limit.burst).first, dates.count >= life.limit.burst {
                    allowed = max(allowed, first + life.limit.interval)
                }
                let cancelled = life.runs(task, from: task.cancelledAt)
                if let pass = passes[number] {
                    guard pass == life.runs(task, from: allowed), allowed <= cancelled else {
                        return "task \(number) passed at \(pass), and may at \(allowed)"
                    }
                    dates.append(pass)
                    front = pass
                } else {
                    guard cancelled <= allowed else { return "task \(number) did not pass, and may at \(allowed)" }
                    front = max(front, cancelled)
                }
            }
            let expected = arrivals.map(\.number).filter { passes[$0] != nil }
            return order == expected ? nil : "the order is \(order), not \(expected)"
        }
    }
}
