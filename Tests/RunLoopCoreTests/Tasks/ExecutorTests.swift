import Glibc
@_spi(Ports) import RunLoopKit
import RunLoopSimulation
import Synchronization
import TestSupport
import Testing

/// Makes a thread whose loop runs until it is stopped.
func idleThread(named name: String = "idle") -> LoopThread {
    LoopThread(name: name) { $0.add(CustomSource(), forMode: .common) }
}

/// An actor that lives on a loop.
actor Tally {
    let home: RunLoop.Executor
    private(set) var count = 0
    nonisolated var unownedExecutor: UnownedSerialExecutor { home.serial.asUnownedSerialExecutor() }

    init(on home: RunLoop.Executor) {
        self.home = home
    }

    @discardableResult
    func add() -> Int {
        count += 1
        return count
    }

    func sleep(_ times: Int, on clock: RunLoop.Clock) async throws {
        for _ in 0..<times { try await clock.sleep(for: .seconds(1)) }
        count += times
    }
}

@Suite("Executors")
struct ExecutorTests {
    /// The number of loops; `make stress` makes ten times as many.
    private static let loops = amount(of: "ENDED_LOOPS", usually: 1000)

    private static var isMine: Bool { RunLoop.installed?.name == "home" }

    @Test("actors and tasks run on the loop's thread")
    func thread() async {
        let thread = idleThread(named: "home")
        let home = thread.remote.executor()
        let tally = Tally(on: home)
        let isHome = await Task(executorPreference: home.task) {
            var isHome = [Self.isMine]
            await Task.yield()
            isHome.append(Self.isMine)
            await tally.add()
            isHome.append(Self.isMine)
            try? await thread.remote.clock().sleep(for: .milliseconds(1))
            isHome.append(Self.isMine)
            return isHome
        }.value
        #expect(isHome == [true, true, true, true])
        #expect(await tally.count == 1)
        #expect(!Self.isMine)
        thread.stop()
        await thread.ended()
    }

    @Test("an executor is the same object each time, and one for each set of modes")
    func identity() async {
        let thread = idleThread()
        #expect(thread.remote.executor() === thread.remote.executor())
        #expect(thread.remote.executor(inModes: "a") !== thread.remote.executor())
        #expect(thread.remote.executor(inModes: ["a", "b"]) === thread.remote.executor(inModes: ["b", "a"]))
        thread.stop()
        await thread.ended()
    }

    @Test("jobs run in the order in which they came")
    func order() {
        withSimulation { simulation in
            let log = Log<String>()
            let home = simulation.loop.remote.executor()
            for number in 0..<100 { Task(executorPreference: home.task) { log("\(number)") } }
            simulation.runUntilIdle()
            #expect(log.entries == (0..<100).map { "\($0)" })
        }
    }

    @Test("a job waits for the modes of its executor")
    func modes() {
        withSimulation { simulation in
            let log = Log<String>()
            let loop = simulation.loop
            for mode in [RunLoop.Mode.default, .tracking] {
                Task(executorPreference: loop.remote.executor(inModes: RunLoop.Modes(mode)).task) { log(mode.name) }
            }
            loop.run(in: .tracking, until: simulation.now)
            #expect(log.text == "tracking")
            loop.run(in: .default, until: simulation.now)
            #expect(log.text == "tracking default")
        }
    }

    @Test("while a job is on the stack, a nested run runs no other job of its executor, and one of another")
    func nested() {
        withSimulation { simulation in
            let log = Log<String>()
            let loop = simulation.loop
            let home = loop.remote.executor(inModes: .every)
            let other = loop.remote.executor(inModes: [.default, .tracking])
            nonisolated(unsafe) let sameLoop = loop
            let run: @Sendable () -> Void = {
                let end = sameLoop.now + .seconds(1)
                sameLoop.perform(at: end, inModes: .tracking) {}
                Task(executorPreference: other.task) { log("stranger") }
                #expect(sameLoop.run(in: .tracking, until: end) == .finished)
            }
            Task(executorPreference: home.task) {
                log("outer")
                run()
                log("outer ends")
            }
            Task(executorPreference: home.task) { log("sibling") }
            simulation.runUntilIdle()
            #expect(log.text == "outer stranger outer ends sibling")
            // The loop slept through the second instead of spinning.
            #expect(loop.statistics.passes < 12)
        }
    }

    @Test("a callback of the loop is isolated to the actors that live there")
    func isolation() {
        withSimulation { simulation in
            let tally = Tally(on: simulation.loop.remote.executor())
            Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in
                tally.preconditionIsolated()
                tally.assumeIsolated { _ = $0.add() }
            }
            simulation.advance(by: .seconds(10))
            #expect(tally.assumeIsolated { $0.count } == 10)
        }
    }

    @Test("an actor is not isolated on another thread")
    func noIsolation() async {
        await #expect(processExitsWith: .failure) {
            let thread = idleThread()
            let tally = Tally(on: thread.remote.executor())
            func useDirectly() { tally.assumeIsolated { _ = $0.add() } }
            useDirectly()
        }
    }

    @Test("a task that only yields keeps neither timers nor other threads' blocks waiting")
    func turns() async {
        let thread = idleThread()
        let isDone = Flag()
        let task = Task(executorPreference: thread.remote.executor().task) {
            while !isDone.isSet { await Task.yield() }
        }
        thread.remote.perform { loop in
            loop.perform(afterDelay: .milliseconds(1)) { isDone.set() }
        }
        await task.value
        thread.stop()
        await thread.ended()
    }

    @Test("jobs that wait when a loop ends still run, whatever their modes")
    func lastJobs() async {
        for _ in 0..<100 {
            let ran = Counter()
            let thread = idleThread()
            for modes in [RunLoop.Modes.common, "never"] {
                let home = thread.remote.executor(inModes: modes)
                for _ in 0..<3 {
                    Task(executorPreference: home.task) {
                        ran.add()
                        await Task.yield()
                        ran.add()
                    }
                }
            }
            thread.stop()
            await thread.ended()
            #expect(ran.value == 12)
        }
    }

    @Test("a job for a loop that has ended traps, and says which")
    func tooLate() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let thread = idleThread(named: "bygone")
            let home = thread.remote.executor()
            thread.stop()
            thread.join()
            await Task(executorPreference: home.task) {}.value
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(text.contains("came to the run loop \"bygone\", which has ended"), "\(text)")
    }

    @Test("dumps show executors with waiting jobs, and loops' tasks by name; jobs are counted")
    func dump() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.task(name: "poller") { try await loop.clock.sleep(for: .seconds(1)) }
            simulation.yield()
            let before = loop.statistics.jobs
            loop.poll()
            #expect(loop.statistics.jobs == before + 1)
            let text = loop.dump().items.map { "\($0)" }
            #expect(text.contains { $0.hasPrefix("task \"poller\" (RunLoopCoreTests/") }, "\(text)")
            #expect(text.contains { $0.hasPrefix("sleep ") && $0.contains("due 1.0") }, "\(text)")
            let home = loop.remote.executor()
            Task(executorPreference: home.task) {}
            #expect(
                loop.dump().items.contains { $0.kind == .executor && $0.detail?.hasPrefix("1 wait: task ") == true })
        }
    }

    @Test("a stall report names the executor whose job blocks the loop")
    func stall() async {
        let reports = Log<String>()
        let isReported = Flag()
        let thread = LoopThread { loop in
            loop.add(CustomSource(), forMode: .common)
            loop[monitors] = StallMonitor(loop, threshold: .milliseconds(5)) { report in
                reports("\(report)")
                isReported.set()
            }
        }
        await Task(executorPreference: thread.remote.executor().task) {
            let end = ContinuousClock.now + .seconds(20)
            while !isReported.isSet && ContinuousClock.now < end { sched_yield() }
        }.value
        #expect(reports.entries.first?.contains("executor \"task ") == true, "\(reports.entries)")
        thread.stop()
        await thread.ended()
    }

    @Test("many loops end with tasks on them")
    func manyLoops() async {
        let ended = Counter()
        for number in 0..<Self.loops {
            let thread = idleThread()
            for _ in 0..<3 {
                Task(executorPreference: thread.remote.executor().task) {
                    do { try await thread.remote.clock().sleep(for: .seconds(number % 2 == 0 ? 0 : 1000)) } catch {}
                    ended.add()
                }
            }
            thread.stop()
            await thread.ended()
        }
        #expect(ended.value == 3 * Self.loops)
    }
}

private let monitors = RunLoop.Local<StallMonitor?> { _ in nil }
