import Glibc
import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

/// Tests of `performAndWait`, which brings a result from another loop's thread, and never leaves its caller waiting for
/// nothing.
@Suite("Waiting for a block's result", .timeLimit(.minutes(15)))
struct PerformAndWaitTests {
    enum World: CaseIterable { case real, simulated }

    struct Refusal: Error {}

    /// Calls `body` on a thread of its own, in a world.
    private func inWorld(_ world: World, _ body: @escaping @Sendable () throws -> Void) {
        onThread {
            #expect(throws: Never.self) {
                switch world {
                case .real: try body()
                case .simulated: try withSimulation { _ in try body() }
                }
            }
        }
    }

    /// Makes a thread whose loop runs until it is stopped.
    private static func idleThread(_ name: String = "loop") -> LoopThread {
        LoopThread(name: name) { $0.add(CustomSource(), forMode: .default) }
    }

    /// Notes the result of a wait, or its error.
    private static func note(_ who: String, in log: Log<String>, _ wait: () throws -> Int) {
        do { log("\(who): \(try wait())") } catch { log("\(who): \(error)") }
    }

    @Test("on the loop's own thread the block runs at once", arguments: World.allCases)
    func ownThread(world: World) {
        inWorld(world) {
            let loop = RunLoop.current
            let number = try loop.remote.performAndWait { inner in
                #expect(inner === RunLoop.current)
                return try inner.remote.performAndWait { _ in threadNumber() }
            }
            #expect(number == threadNumber())
        }
    }

    @Test("on another thread the block runs on the loop's", arguments: World.allCases)
    func otherThread(world: World) {
        inWorld(world) {
            let thread = Self.idleThread()
            let results = try (0..<100).map { number in
                try thread.remote.performAndWait { loop in
                    #expect(loop === RunLoop.current)
                    return (number, threadNumber())
                }
            }
            #expect(results.map(\.0) == Array(0..<100))
            #expect(!results.contains { $0.1 == threadNumber() })
            thread.stop()
            thread.join()
        }
    }

    @Test("an error thrown by the block is rethrown, on the loop's thread and on another", arguments: World.allCases)
    func error(world: World) {
        inWorld(world) {
            let thread = Self.idleThread()
            for remote in [thread.remote, RunLoop.current.remote] {
                #expect(throws: Refusal.self) { try remote.performAndWait { _ in throw Refusal() } }
            }
            thread.stop()
            thread.join()
        }
    }

    @Test("a loop that has ended", arguments: World.allCases)
    func ended(world: World) {
        inWorld(world) {
            let thread = LoopThread(name: "short") { _ in }
            thread.join()
            #expect(throws: RunLoop.WaitError.loopEnded(loop: "short")) { try thread.remote.performAndWait { _ in } }
        }
    }

    @Test("a loop that ends before it has run the block", arguments: World.allCases)
    func endsMeanwhile(world: World) {
        inWorld(world) {
            let began = RunLoop.current.now
            let thread = LoopThread { loop in
                loop.perform(afterDelay: .milliseconds(20)) { loop.stop() }
                loop.add(CustomSource(), forMode: .default)
            }
            #expect(throws: RunLoop.WaitError.loopEnded(loop: "loop")) {
                try thread.remote.performAndWait(inModes: "a mode that nobody runs") { _ in }
            }
            #expect(RunLoop.current.now >= began + .milliseconds(20))
            thread.stop()
            thread.join()
        }
    }

    @Test("the caller waits for a mode of the block", arguments: World.allCases)
    func modes(world: World) {
        inWorld(world) {
            let panel: RunLoop.Mode = "panel"
            let thread = LoopThread { loop in
                loop.add(CustomSource(), forMode: .default)
                loop.perform(afterDelay: .milliseconds(5)) {
                    loop.add(CustomSource(), forMode: RunLoop.Modes(panel))
                    loop.run(in: panel)
                }
            }
            let mode = try thread.remote.performAndWait(inModes: RunLoop.Modes(panel)) { loop in
                loop.stop()
                return loop.currentMode
            }
            #expect(mode == panel)
            thread.stop()
            thread.join()
        }
    }

    @Test("the waiting thread rests in virtual time")
    func virtualTime() throws {
        try withSimulation { simulation in
            let thread = LoopThread { loop in
                loop.perform { simulation.spend(.seconds(5)) }
                loop.add(CustomSource(), forMode: .default)
            }
            let when = try thread.remote.performAndWait { loop in
                simulation.spend(.seconds(2))
                return loop.now
            }
            #expect(when == simulation.now)
            #expect(simulation.now.nanoseconds == 7_000_000_000)
        }
    }

    @Test(
        "of two loops that wait for each other the later one gets an error with both names", arguments: World.allCases)
    func mutualWait(world: World) {
        inWorld(world) {
            let log = Log<String>()
            let (a, b) = (Self.idleThread("a"), Self.idleThread("b"))
            let remotes = (a.remote, b.remote)
            a.remote.perform { _ in
                Self.note("outer", in: log) {
                    try remotes.1.performAndWait { _ in
                        Self.note("inner", in: log) { try remotes.0.performAndWait { _ in 7 } }
                        return 8
                    }
                }
            }
            if world == .real {
                #expect(eventually("both waits end") { log.entries.count == 2 })
            } else {
                RunLoop.current.perform(afterDelay: .seconds(1)) {}
                RunLoop.current.run()
            }
            #expect(log.entries == ["inner: \(RunLoop.WaitError.deadlock(caller: "b", loop: "a"))", "outer: 8"])
            for thread in [a, b] {
                thread.stop()
                thread.join()
            }
        }
    }

    @Test("three loops that wait for one another in a circle")
    func circle() {
        let log = Log<String>()
        let threads = ["a", "b", "c"].map { Self.idleThread($0) }
        let remotes = threads.map(\.remote)
        remotes[0].perform { _ in
            Self.note("a", in: log) {
                try remotes[1].performAndWait { _ in
                    Self.note("b", in: log) {
                        try remotes[2].performAndWait { _ in
                            Self.note("c", in: log) { try remotes[0].performAndWait { _ in 7 } }
                            return 8
                        }
                    }
                    return 9
                }
            }
        }
        #expect(eventually("all waits end") { log.entries.count == 3 })
        #expect(log.entries == ["c: \(RunLoop.WaitError.deadlock(caller: "c", loop: "a"))", "b: 8", "a: 9"])
        for thread in threads {
            thread.stop()
            thread.join()
        }
    }

    @Test("two loops that keep waiting for each other: no wait lasts, and none fails without reason")
    func crossedWaits() {
        let (a, b) = (Self.idleThread("a"), Self.idleThread("b"))
        let ends = Counter()
        for (here, there, names) in [(a.remote, b.remote, ("a", "b")), (b.remote, a.remote, ("b", "a"))] {
            here.perform { loop in
                func next(_ count: Int) {
                    guard count > 0 else {
                        ends.add()
                        return
                    }
                    do {
                        try there.performAndWait { _ in }
                    } catch {
                        #expect(error as? RunLoop.WaitError == .deadlock(caller: names.0, loop: names.1))
                    }
                    loop.perform { next(count - 1) }
                }
                next(2000)
            }
        }
        #expect(eventually("both loops are done") { ends.value == 2 })
        for thread in [a, b] {
            thread.stop()
            thread.join()
        }
    }

    @Test("a loop that waits, after an advance, for one that waits for it gets the error at once")
    func afterAdvance() {
        let errors = Log<String>()
        withSimulation { simulation in
            let main = simulation.loop.remote
            let thread = LoopThread(name: "worker") { loop in
                loop.add(CustomSource(), forMode: .default)
                loop.perform(afterDelay: .seconds(1)) {
                    Self.note("worker", in: errors) { try main.performAndWait(inModes: "panel") { _ in 7 } }
                }
            }
            simulation.advance(by: .seconds(2))
            Self.note("main", in: errors) { try thread.remote.performAndWait { _ in 8 } }
            simulation.loop.poll(in: "panel")
            simulation.advance(by: .seconds(1))
            Self.note("main", in: errors) { try thread.remote.performAndWait { _ in 8 } }
        }
        #expect(
            errors.entries == [
                "main: \(RunLoop.WaitError.deadlock(caller: "main", loop: "worker"))", "worker: 7", "main: 8",
            ])
    }

    @Test("a deadlock of two simulated threads that wait for each other is reported")
    func deadlock() {
        let errors = Log<RunLoop.WaitError>()
        withSimulation { simulation in
            let loop = simulation.loop
            let main = loop.remote
            let thread = LoopThread { loop in
                loop.add(CustomSource(), forMode: .default)
                loop.perform(afterDelay: .seconds(1)) {
                    do { try main.performAndWait { _ in } } catch { errors.append(error as! RunLoop.WaitError) }
                }
            }
            loop.perform(afterDelay: .seconds(1)) {
                do { try thread.remote.performAndWait { _ in } } catch { errors.append(error as! RunLoop.WaitError) }
            }
            simulation.advance(by: .seconds(2))
            #expect(simulation.now.nanoseconds == 2_000_000_000)
        }
        #expect(errors.entries == [.deadlock(caller: "loop", loop: "main")])
    }

    @Test("a thread that waits for a running block gets no error: the wait inside the block does")
    func chainOfWaits() {
        let errors = Log<String>()
        withSimulation { simulation in
            let loop = simulation.loop
            let main = loop.remote
            let thread = Self.idleThread()
            loop.perform {
                do {
                    let result = try thread.remote.performAndWait { _ in
                        do {
                            try main.performAndWait { _ in }
                        } catch {
                            errors("inner: \(error)")
                        }
                        return "outer: done"
                    }
                    errors(result)
                } catch {
                    errors("outer: \(error)")
                }
            }
            simulation.advance(by: .seconds(1))
        }
        #expect(
            errors.entries == ["inner: \(RunLoop.WaitError.deadlock(caller: "loop", loop: "main"))", "outer: done"])
    }

    @Test("a simulation ends while one of its threads waits for its first loop")
    func simulationEnds() {
        let errors = Log<RunLoop.WaitError>()
        withSimulation { simulation in
            let main = simulation.loop.remote
            _ = LoopThread { _ in
                do {
                    try main.performAndWait(inModes: "a mode that nobody runs") { _ in }
                } catch {
                    errors.append(error as! RunLoop.WaitError)
                }
            }
            simulation.advance(by: .seconds(1))
            #expect(errors.entries == [])
        }
        #expect(errors.entries == [.starved])
    }

    @Test("a simulated thread waits for a loop of the real world, and the other way round")
    func acrossWorlds() throws {
        let real = Self.idleThread()
        try withSimulation { simulation in
            let numbers = try (0..<200).map { number in try real.remote.performAndWait { _ in number } }
            #expect(numbers == Array(0..<200))
            let main = simulation.loop.remote
            let isDone = Flag()
            let other = PlainThread {
                for number in 0..<200 {
                    #expect((try? main.performAndWait { _ in number }) == number)
                }
                isDone.set()
            }
            let source = CustomSource()
            simulation.loop.add(source, forMode: .default)
            #expect(
                eventually("the other thread has its results") {
                    simulation.loop.poll()
                    return isDone.isSet
                })
            other.join()
        }
        real.stop()
        real.join()
    }

    @Test("many threads wait for one loop that ends some time: each has a result or an error")
    func race() {
        for _ in 0..<20 {
            let thread = Self.idleThread()
            let results = Counter()
            let errors = Counter()
            let waiters = (0..<4).map { _ in
                PlainThread {
                    for _ in 0..<500 {
                        do {
                            try thread.remote.performAndWait { _ in results.add() }
                        } catch {
                            #expect(error as? RunLoop.WaitError == .loopEnded(loop: thread.name))
                            errors.add()
                        }
                    }
                }
            }
            usleep(500)
            thread.stop()
            thread.join()
            for waiter in waiters { waiter.join() }
            #expect(results.value + errors.value == 2000)
        }
    }
}
