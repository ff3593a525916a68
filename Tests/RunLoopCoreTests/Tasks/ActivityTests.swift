@_spi(Ports) import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("Activities of a loop", .timeLimit(.minutes(5)))
struct ActivityTests {
    private static func second(_ number: Int64) -> RunLoop.Instant { .init(nanoseconds: number * 1_000_000_000) }

    private static let choices: [RunLoop.Activity] = [
        .entry, .beforeTimers, .beforeSources, .beforeWaiting, .afterWaiting, .exit, [.entry, .exit],
        [.beforeWaiting, .afterWaiting], .all,
    ]

    @Test("a task receives, in order, with the mode and the date, activities of runs in the modes that it chose")
    func order() {
        withSimulation { simulation in
            let loop = simulation.loop
            let log = Log<String>()
            loop.addCommonMode(.tracking)
            let activities = loop.activities(of: [.entry, .afterWaiting, .exit], inModes: .tracking)
            loop.task {
                for try await batch in activities {
                    #expect(batch.missed == 0)
                    for event in batch.events { log("\(event), told at \(loop.now)") }
                }
            }
            simulation.drag(from: Self.second(2), until: Self.second(4))
            loop.perform(at: Self.second(9)) {}
            simulation.advance(to: Self.second(10))
            #expect(
                log.entries == [
                    "entry in tracking at 2.000000000, told at 2.000000000",
                    "afterWaiting in tracking at 4.000000000, told at 4.000000000",
                    "exit in tracking at 4.000000000, told at 4.000000000",
                ])
        }
    }

    @Test("an activity of a run in a mode in which the task rests is delivered when the task's mode runs again")
    func otherMode() {
        withSimulation { simulation in
            let loop = simulation.loop
            let log = Log<String>()
            let activities = loop.activities(of: [.entry, .exit], inModes: .tracking)
            loop.task {
                for try await batch in activities {
                    #expect(batch.missed == 0)
                    for event in batch.events { log("\(event), told at \(loop.now)") }
                }
            }
            simulation.drag(from: Self.second(2), until: Self.second(4))
            simulation.advance(to: Self.second(10))
            #expect(
                log.entries == [
                    "entry in tracking at 2.000000000, told at 4.000000000",
                    "exit in tracking at 4.000000000, told at 4.000000000",
                ])
        }
    }

    /// Returns the activities and the number of passes of a loop in ten seconds, while an observer or a task looks on.
    ///
    /// The loop has a timer and a nested run.
    private func passes(
        _ loop: RunLoop, _ activities: RunLoop.Activity,
        _ look: (@escaping @Sendable (String) throws -> Void) -> Void
    ) -> (count: Int, log: [String]) {
        let log = Log<String>()
        loop.addCommonMode(.tracking)
        Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in }
        loop.perform(afterDelay: .milliseconds(4_500)) {
            loop.perform(afterDelay: .milliseconds(100), inModes: .common) { loop.stop() }
            loop.run(in: .tracking)
        }
        look { event in
            log(event)
            struct TooMany: Error {}
            if log.entries.count > 1000 { throw TooMany() }
        }
        let end = Self.second(10) + .milliseconds(500)
        loop.perform(at: end) { loop.stop() }
        while loop.now < end { loop.run(mode: .default, before: .distantFuture) }
        return (loop.statistics.passes, log.entries)
    }

    /// Returns the activities that an observer sees, beside a task that does not look.
    private func observed(_ activities: RunLoop.Activity) -> (count: Int, log: [String]) {
        withSimulation { simulation in
            let loop = simulation.loop
            return passes(loop, activities) { note in
                loop.add(
                    Observer(activities: activities) { _, activity in
                        try? note("\(activity) in \(loop.currentMode!) at \(loop.now)")
                    }, forMode: .common)
                loop.task { try await loop.clock.sleep(for: .seconds(100)) }
            }
        }
    }

    @Test("an observing task causes no pass, regardless of the activities it observes", arguments: choices)
    func awake(_ activities: RunLoop.Activity) {
        let told = withSimulation { simulation in
            let loop = simulation.loop
            return passes(loop, activities) { note in
                let activities = loop.activities(of: activities)
                loop.task { for try await batch in activities { try batch.events.map(\.description).forEach(note) } }
            }
        }
        let seen = observed(activities)
        #expect(told.count == seen.count)
        #expect(told.log == Array(seen.log.prefix(told.log.count)) && told.log.count > 0)
        #expect(told.log.count >= seen.log.count - 4, "what the last pass did is not told yet")
    }

    /// An executor whose jobs reach the loop by way of a source, as the main actor's jobs do.
    private final class SourceExecutor: SerialExecutor, @unchecked Sendable {
        // Unchecked, but all of it is used on the loop's thread.
        private var source: CustomSource!
        private var jobs: [UnownedJob] = []

        init(on loop: RunLoop) {
            source = CustomSource { [unowned self] _ in
                let due = jobs
                jobs = []
                for job in due { job.runSynchronously(on: asUnownedSerialExecutor()) }
            }
            loop.add(source, forMode: .common)
        }

        func checkIsolated() {}

        func enqueue(_ job: consuming ExecutorJob) {
            jobs.append(UnownedJob(job))
            source.signal()
        }
    }

    private actor Onlooker {
        private let home: SourceExecutor
        private let note: @Sendable (String) throws -> Void
        nonisolated var unownedExecutor: UnownedSerialExecutor { home.asUnownedSerialExecutor() }

        init(on home: SourceExecutor, _ note: @escaping @Sendable (String) throws -> Void) {
            (self.home, self.note) = (home, note)
        }

        func look(at activities: RunLoop.Activity) {
            // A task of the loop that is isolated to the main actor prefers the loop as well, and is therefore slow.
            Task(executorPreference: RunLoop.installed!.remote.executor().task) {
                for try await batch in RunLoop.installed!.activities(of: activities) {
                    try batch.events.map(\.description).forEach(self.note)
                }
            }
        }
    }

    @Test("an observing task whose jobs come by way of a source does not keep the loop awake", arguments: choices)
    func awakeBySource(_ activities: RunLoop.Activity) {
        let told = withSimulation { simulation in
            let loop = simulation.loop
            return passes(loop, activities) { note in
                let onlooker = Onlooker(on: SourceExecutor(on: loop), note)
                onlooker.assumeIsolated { $0.look(at: activities) }
            }
        }
        #expect(told.log.count >= 1)
        // One more pass for each received batch.
        #expect(told.count <= 2 * observed(activities).count + 5)
    }

    @Test("several observing tasks do not keep one another awake", arguments: choices)
    func awakeTogether(_ activities: RunLoop.Activity) {
        let told = withSimulation { simulation in
            let loop = simulation.loop
            return passes(loop, activities) { note in
                for _ in 0..<3 {
                    let onlooker = Onlooker(on: SourceExecutor(on: loop), note)
                    onlooker.assumeIsolated { $0.look(at: activities) }
                }
            }
        }
        #expect(told.log.count >= 3)
        #expect(told.count <= 4 * observed(activities).count + 5)
    }

    @Test("a run ends when nothing else is left, though a task awaits its activities", arguments: choices)
    func finishes(_ activities: RunLoop.Activity) {
        withSimulation { simulation in
            let loop = simulation.loop
            // Unsafe, but the task stays on the loop's thread.
            nonisolated(unsafe) let sameLoop = loop
            Task(executorPreference: loop.remote.executor().task) {
                for try await _ in sameLoop.activities(of: activities) {
                    guard sameLoop.statistics.passes > 1000 else { continue }
                    Issue.record("the loop does not end")
                    break
                }
            }
            for second in 1...3 { loop.perform(afterDelay: .seconds(second)) {} }
            loop.run()
            #expect(loop.now == Self.second(3))
            #expect(loop.statistics.passes < 20)
        }
    }

    @Test("a loop that never sleeps delivers activities, too")
    func busy() {
        withSimulation { simulation in
            let loop = simulation.loop
            let told = Counter()
            let source = CustomSource { source in
                if told.value < 3 && loop.statistics.passes < 100 { source.signal() } else { source.invalidate() }
            }
            loop.add(source, forMode: .common)
            source.signal()
            let activities = loop.activities(of: .beforeSources)
            loop.task { for try await _ in activities { told.add() } }
            while source.isValid { loop.poll() }
            #expect(told.value == 3 && loop.statistics.waits == 0)
        }
    }

    @Test("activities while no task waits are kept up to a limit, and the task receives the number lost")
    func overflow() {
        withSimulation { simulation in
            let loop = simulation.loop
            let log = Log<String>()
            let activities = loop.activities(of: [.entry, .exit], inModes: .tracking, bufferingOldest: 3)
            func run(_ times: Int) {
                for _ in 0..<times {
                    loop.perform(inModes: .tracking) {}
                    loop.run(in: .tracking)
                }
            }
            run(3)
            loop.task {
                for try await batch in activities {
                    log("\(batch.events.map(\.description)) and \(batch.missed) at \(loop.now)")
                }
            }
            simulation.advance(by: .seconds(1))
            run(1)
            simulation.advance(by: .seconds(1))
            let lines = (0..<2).map { ["entry in tracking at \($0).000000000", "exit in tracking at \($0).000000000"] }
            #expect(
                log.entries == [
                    "\(lines[0] + [lines[0][0]]) and 3 at 1.000000000", "\(lines[1]) and 0 at 1.000000000",
                ])
        }
    }

    @Test("no activity is lost or delivered twice, wherever waits are cancelled")
    func cancelled() {
        let seed = UInt64.random(in: 0 ... .max)
        var random = SeededGenerator(seed: seed)
        withSimulation { simulation in
            let loop = simulation.loop
            let (seen, told) = (Log<String>(), Log<String>())
            loop.add(
                Observer(activities: .all) { _, activity in
                    seen("\(activity) in \(loop.currentMode!) at \(loop.now)")
                }, forMode: .common)
            let activities = loop.activities(of: .all, bufferingOldest: .max)
            var cancelled = 0
            let iterator = activities.makeAsyncIterator()
            loop.task {
                for _ in 0..<1000 {
                    let wait = loop.task { try await iterator.next()! }
                    if Bool.random(using: &random) {
                        let pause = Duration.milliseconds(Int.random(in: 0...2, using: &random))
                        loop.perform(afterDelay: pause) { wait.cancel() }
                    } else {
                        for _ in 0..<Int.random(in: 0...3, using: &random) { await Task.yield() }
                        wait.cancel()
                    }
                    do { for event in try await wait.value.events { told("\(event)") } } catch {
                        #expect(error is CancellationError, "seed \(seed)")
                        cancelled += 1
                    }
                }
            } then: { result in
                #expect(throws: Never.self) { try result.get() }
            }
            let standing = simulation.runUntilIdle()
            #expect(standing == .done, "seed \(seed)")
            #expect(told.entries == Array(seen.entries.prefix(told.entries.count)), "seed \(seed)")
            #expect(cancelled > 0 && told.entries.count > 100, "seed \(seed)")
        }
    }

    @Test("a second task is refused, and the loop releases the observer with the sequence")
    func second() {
        withSimulation { simulation in
            let loop = simulation.loop
            let log = Log<String>()
            func observers() -> Int { loop.dump().items.count { $0.kind == .observer } }
            var activities: RunLoop.Activities? = loop.activities(of: .entry, inModes: .tracking)
            let first = loop.task { [activities] in for try await _ in activities! {} }
            loop.task { [activities] in
                for try await _ in activities! {}
            } then: {
                log("\($0)")
                first.cancel()
            }
            activities = nil
            #expect(observers() == 1)
            simulation.runUntilIdle()
            #expect(log.text == "failure(another task already waits for activities of a loop; wait in one task only)")
            #expect(observers() == 0)
        }
    }

    @Test("when the loop has ended, a task receives the kept activities, then an error that names the loop")
    func ends() async {
        let log = Log<String>()
        let thread = LoopThread(name: "short") { loop in
            let activities = loop.activities(of: .exit)
            loop.task {
                do {
                    for try await batch in activities { log("\(batch.events.last!.activity)") }
                } catch { log("\(error)") }
            }
            loop.perform(afterDelay: .milliseconds(2)) { loop.stop() }
        }
        await thread.ended()
        #expect(log.entries.suffix(2) == ["exit", "the run loop \"short\" has ended"])
    }
}
