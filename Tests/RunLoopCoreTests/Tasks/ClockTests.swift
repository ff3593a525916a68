import Glibc
import RunLoopKit
import RunLoopSimulation
import Synchronization
import TestSupport
import Testing

@Suite("A loop's clock")
struct ClockTests {
    @Test("sleeps end at their dates, equal ones in the order in which they began, and after the timers of their pass")
    func order() {
        withSimulation { simulation in
            let loop = simulation.loop
            let (clock, home, log) = (loop.clock, loop.remote.executor(), Log<String>())
            for number in 0..<3 {
                Task(executorPreference: home.task) {
                    try await clock.sleep(until: .init(nanoseconds: 5_000_000_000))
                    log("\(number)@\(clock.now)")
                }
                loop.poll()
                loop.add(Timer(at: .init(nanoseconds: 5_000_000_000)) { _ in log("timer\(number)") }, forMode: .default)
            }
            simulation.runUntilIdle()
            // The tasks are resumed in that order, and run with the blocks of the pass.
            #expect(log.text == "timer0 timer1 timer2 0@5.000000000 1@5.000000000 2@5.000000000")
        }
    }

    @Test("a sleep until now or earlier neither waits nor yields")
    func past() {
        withSimulation { simulation in
            let loop = simulation.loop
            let clock = loop.clock
            loop.task {
                for date in [RunLoop.Instant.distantPast, clock.now] { try await clock.sleep(until: date) }
                try await clock.sleep(for: .seconds(-1))
                return clock.now
            } then: {
                #expect((try? $0.get()) == RunLoop.Instant(nanoseconds: 0))
            }
            simulation.runUntilIdle()
            #expect(loop.statistics.jobs == 1)
        }
    }

    @Test("clocks of one loop are equal, whatever their modes, and clocks of two loops differ")
    func clocks() {
        withSimulation { simulation in
            let loop = simulation.loop
            #expect(loop.clock.id == loop.remote.clock(inModes: .tracking).id)
            let other = LoopThread { _ in }
            #expect(loop.clock.id != other.remote.clock().id)
        }
        func identity<Value: Identifiable>(of value: Value) -> Value.ID where Value: Clock, Value.ID: Sendable {
            value.id
        }
        withSimulation { #expect(identity(of: $0.loop.clock) == $0.loop.clock.id) }
    }

    @Test("a cancelled sleep ends at the very instant, once, and leaves nothing behind")
    func cancelled() {
        withSimulation { simulation in
            let loop = simulation.loop
            let (clock, log) = (loop.clock, Log<String>())
            let task = loop.task {
                try await clock.sleep(for: .seconds(100))
            } then: {
                log("\($0) \(clock.now)")
            }
            loop.perform(afterDelay: .seconds(3)) { task.cancel() }
            #expect(simulation.runUntilIdle() == .done)
            #expect(log.text == "failure(Swift.CancellationError()) 3.000000000")
            #expect(simulation.now == RunLoop.Instant(nanoseconds: 3_000_000_000))
        }
    }

    @Test("a task that is cancelled before it sleeps does not sleep")
    func cancelledBefore() {
        withSimulation { simulation in
            let loop = simulation.loop
            let log = Log<String>()
            let task = loop.task {
                try await loop.clock.sleep(for: .seconds(100))
            } then: {
                log("\($0)")
            }
            task.cancel()
            simulation.runUntilIdle()
            #expect(log.text == "failure(Swift.CancellationError())")
            #expect(simulation.now == RunLoop.Instant(nanoseconds: 0))
        }
    }

    @Test("a sleep in modes other than the running one continues")
    func modes() {
        withSimulation { simulation in
            let loop = simulation.loop
            let (log, clock) = (Log<String>(), loop.remote.clock(inModes: .default))
            loop.task {
                try await clock.sleep(for: .seconds(1))
                log("\(clock.now)")
            }
            simulation.drag(from: .init(nanoseconds: 500_000_000), until: .init(nanoseconds: 4_000_000_000))
            simulation.advance(by: .seconds(10))
            #expect(log.text == "4.000000000")
        }
    }

    @Test("actors of the loop sleep on its clock without leaving it", arguments: [false, true])
    func actors(prefers: Bool) {
        withSimulation { simulation in
            let loop = simulation.loop
            let (clock, home) = (loop.clock, loop.remote.executor())
            let tallies = (0..<10).map { _ in Tally(on: home) }
            for tally in tallies {
                if prefers {
                    Task(executorPreference: home.task) { try await tally.sleep(1000, on: clock) }
                } else {
                    tally.assumeIsolated { $0.startSleeping(1000, on: clock) }
                }
            }
            #expect(simulation.runUntilIdle() == .done)
            #expect(simulation.now == RunLoop.Instant(nanoseconds: 1_000_000_000_000))
            #expect(tallies.allSatisfy { $0.assumeIsolated { $0.count } == 1000 })
            // One job that brings the task onto the loop, and one for each sleep.
            #expect(loop.statistics.jobs <= 10 * (2 + 1000))
        }
    }

    @Test("a child of a task is cancelled without its parent, and a parent with its children")
    func children() {
        withSimulation { simulation in
            let loop = simulation.loop
            let (clock, log) = (loop.clock, Log<String>())
            @Sendable func sleep(_ name: String, _ seconds: Int) async {
                do {
                    try await clock.sleep(for: .seconds(seconds))
                    log("\(name) slept \(clock.now)")
                } catch {
                    log("\(name) cancelled \(clock.now)")
                }
            }
            let task = loop.task {
                await withTaskGroup(of: Void.self) { group in
                    group.addTask { await sleep("first", 100) }
                    await sleep("parent", 1)
                    group.cancelAll()
                }
                async let second: Void = sleep("second", 100)
                await sleep("parent", 100)
                await second
            }
            loop.perform(afterDelay: .seconds(5)) { task.cancel() }
            simulation.runUntilIdle()
            #expect(log.entries.prefix(2) == ["parent slept 1.000000000", "first cancelled 1.000000000"])
            // The runtime decides which of them comes first.
            #expect(Set(log.entries.dropFirst(2)) == ["parent cancelled 5.000000000", "second cancelled 5.000000000"])
        }
    }

    @Test("a task of a loop that sleeps on an actor of another loop is cancelled there, whenever that is")
    func elsewhere() async {
        let threads = (0..<2).map { _ in LoopThread(name: "loop") { $0.add(CustomSource(), forMode: .common) } }
        let (clock, tally) = (threads[1].remote.clock(), Tally(on: threads[1].remote.executor()))
        for _ in 0..<1000 {
            let task = try? await threads[0].remote.run { loop in
                loop.task { try await tally.sleep(3600, on: clock) }
            }
            if Bool.random() { await Task.yield() }
            task?.cancel()
            await #expect(throws: CancellationError.self) { try await task?.value }
        }
        for thread in threads {
            thread.stop()
            await thread.ended()
        }
    }

    @Test("the standard library's generic sleeps work on it")
    func generic() {
        withSimulation { simulation in
            let loop = simulation.loop
            let log = Log<String>()
            loop.task {
                let clock = loop.clock
                try await Task.sleep(until: clock.now + .seconds(2), tolerance: nil, clock: clock)
                try await Task.sleep(for: .seconds(2), clock: clock)
                let took = try await clock.measure { try await clock.sleep(for: .seconds(3)) }
                log("\(clock.now) \(took)")
            }
            simulation.runUntilIdle()
            #expect(log.text == "7.000000000 3.0 seconds")
        }
    }

    @Test("a sleep ends when its loop does, with an error that names it", arguments: [false, true])
    func loopEnds(isOnLoop: Bool) async {
        let thread = idleThread(named: "short")
        let clock = thread.remote.clock()
        let preference = isOnLoop ? thread.remote.executor().task : nil
        let task = Task(executorPreference: preference) { try await clock.sleep(for: .seconds(1000)) }
        thread.remote.perform { $0.perform(afterDelay: .milliseconds(5)) { thread.stop() } }
        await #expect(throws: RunLoop.WaitError.loopEnded(loop: "short")) { try await task.value }
        await thread.ended()
        await #expect(throws: RunLoop.WaitError.loopEnded(loop: "short")) { try await clock.sleep(for: .seconds(1)) }
    }

    @Test("with tolerance, a sleep ends with any earlier wake-up after its date, and never before it")
    func tolerance() async throws {
        let thread = idleThread()
        let clock = thread.remote.clock()
        try await withThrowingTaskGroup(of: Void.self) { group in
            let begin = clock.now
            for number in 0..<50 {
                group.addTask {
                    let date = begin + .milliseconds(5 + number)
                    try await clock.sleep(until: date, tolerance: .milliseconds(60))
                    #expect(clock.now >= date)
                }
            }
            try await group.waitForAll()
        }
        let wakeUps = try await thread.remote.run { $0.statistics.waits }
        #expect(wakeUps < 50 + 30, "\(wakeUps)")
        thread.stop()
        await thread.ended()
    }

    @Test("sleeps from many threads, some of them cancelled, are never early and resume once")
    func manyThreads() async {
        let seed = UInt64.random(in: 0 ... .max)
        let thread = idleThread()
        let clock = thread.remote.clock()
        let (slept, cancelled) = (Counter(), Counter())
        await withTaskGroup(of: Void.self) { group in
            for worker in 0..<8 {
                group.addTask {
                    var random = SeededGenerator(seed: seed &+ UInt64(worker))
                    for _ in 0..<300 {
                        let duration = Duration.microseconds(Int.random(in: 0...300, using: &random))
                        let delay = Int.random(in: 0...300, using: &random)
                        let prefers = Bool.random(using: &random)
                        let begin = clock.now
                        let sleep = Task(executorPreference: prefers ? thread.remote.executor().task : nil) {
                            try await clock.sleep(for: duration)
                        }
                        if delay < 150 {
                            usleep(UInt32(delay))
                            sleep.cancel()
                        }
                        do {
                            try await sleep.value
                            #expect(clock.now >= begin + duration, "seed \(seed)")
                            slept.add()
                        } catch {
                            #expect(error is CancellationError, "seed \(seed)")
                            cancelled.add()
                        }
                    }
                }
            }
        }
        #expect(slept.value + cancelled.value == 8 * 300, "seed \(seed)")
        let left = try? await thread.remote.run { loop in loop.dump().items.count { $0.kind == .sleep } }
        #expect(left == 0, "seed \(seed)")
        thread.stop()
        await thread.ended()
    }

    @Test("random sleeps end as a model says", arguments: 0..<20)
    func model(round: Int) {
        let seed = UInt64.random(in: 0 ... .max)
        var random = SeededGenerator(seed: seed)
        withSimulation { simulation in
            let loop = simulation.loop
            let (clock, log) = (loop.clock, Log<String>())
            var expected: [(date: Int, order: Int, text: String)] = []
            for number in 0..<200 {
                let date = Int.random(in: 0..<50, using: &random)
                let cancelDate = Int.random(in: 0..<100, using: &random)
                // Calls that cancel were requested first, so at equal dates they come first.
                let isCancelled = cancelDate <= date && date > 0
                expected.append((isCancelled ? cancelDate : date, number, "\(number)\(isCancelled ? "!" : "")"))
                let task = loop.task {
                    do {
                        try await clock.sleep(for: .seconds(date))
                        log("\(number)")
                    } catch {
                        log("\(number)!")
                    }
                }
                loop.perform(afterDelay: .seconds(cancelDate)) { task.cancel() }
            }
            simulation.runUntilIdle()
            let byDate = { (entries: [(date: Int, order: Int, text: String)]) in
                Dictionary(grouping: entries, by: \.date).mapValues { Set($0.map(\.text)) }
            }
            var rest = log.entries[...]
            for (_, texts) in byDate(expected).sorted(by: { $0.key < $1.key }) {
                #expect(Set(rest.prefix(texts.count)) == texts, "seed \(seed)")
                rest = rest.dropFirst(texts.count)
            }
            #expect(rest.isEmpty, "seed \(seed)")
        }
    }
}

extension Tally {
    /// Starts a task of the actor's own, which prefers no executor.
    func startSleeping(_ times: Int, on clock: RunLoop.Clock) {
        Task { try await sleep(times, on: clock) }
    }
}
