@_spi(Ports) import RunLoopCore
import RunLoopExploration
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("Choices that exploration makes, and choices that it leaves alone")
struct ChoiceTests {
    @Test("two tasks of two steps run in each of their possible orders, and in no other")
    func allOrders() {
        var orders: Set<String> = []
        let result = Exploration(schedules: 500).run { simulation in
            let log = Log<String>()
            for name in ["a", "b"] {
                simulation.loop.task(name: name) {
                    log(name)
                    await Task.yield()
                    log(name)
                }
            }
            simulation.runUntilIdle()
            orders.insert(log.entries.joined())
        }
        guard case .passed = result else { return #expect(Bool(false), "\(result)") }
        #expect(orders == ["aabb", "abab", "abba", "baab", "baba", "bbaa"])
    }

    @Test("a task that has ended at once leaves nothing to the task that comes next")
    func atOnce() {
        var orders: Set<String> = []
        let result = Exploration(schedules: 20).run { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let origin = RunLoop.Origin(file: #fileID, line: #line)
            _ = loop.taskAtOnce(name: "answer", inModes: .common, isolation: nil, origin: origin) { log("a") }
            Task(executorPreference: loop.remote.executor().task) { log("b") }
            simulation.runUntilIdle()
            orders.insert(log.entries.joined())
        }
        guard case .passed = result else { return #expect(Bool(false), "\(result)") }
        #expect(orders == ["ab"])
    }

    /// Returns the order in which two threads perform two blocks each.
    private func order(_ simulation: Simulation) -> String {
        let log = Log<String>()
        let threads = ["a", "b"].map { name in LoopThread(name: name) { $0.add(CustomSource(), forMode: .default) } }
        for (name, thread) in zip(["a", "b"], threads) {
            for _ in 0..<2 { thread.remote.perform { _ in log(name) } }
        }
        simulation.runUntilIdle()
        return log.entries.joined()
    }

    @Test("threads have their turns in any order, and between the handlers of another")
    func threads() {
        var orders: Set<String> = []
        _ = Exploration(schedules: 500).run { orders.insert(order($0)) }
        #expect(orders == ["aabb", "abab", "abba", "baab", "baba", "bbaa"])
    }

    @Test("usually threads that have rested continue in the order in which they were started, as without exploration")
    func usualThreads() {
        func order(_ simulation: Simulation) -> [String] {
            let log = Log<String>()
            let threads = ["a", "b", "c"].map { name in
                LoopThread(name: name) { loop in
                    loop.add(Timer(timeInterval: .seconds(1), repeats: true) { _ in log(name) }, forMode: .default)
                }
            }
            simulation.advance(by: .seconds(2))
            return withExtendedLifetime(threads) { log.entries }
        }
        var usual: [String] = []
        _ = Exploration(schedules: 1).run { usual = order($0) }
        #expect(usual == ["a", "b", "c", "a", "b", "c"])
        #expect(usual == withSimulation { order($0) })
    }

    private actor Room {
        private let home: RunLoop.Executor
        nonisolated var unownedExecutor: UnownedSerialExecutor { home.serial.asUnownedSerialExecutor() }

        init(on home: RunLoop.Executor) { self.home = home }

        func visit() {}
    }

    @Test("a task that is held back stays so while another one goes from thread to thread")
    func held() {
        let result = Exploration(schedules: 500).run { simulation in
            let (loop, count) = (simulation.loop, Counter())
            let thread = LoopThread(name: "other") { $0.add(CustomSource(), forMode: .default) }
            let room = Room(on: thread.remote.executor())
            loop.task(name: "slow") {
                let former = count.value
                await Task.yield()
                count.add(former + 1 - count.value)
            }
            loop.task(name: "fast") {
                for _ in 0..<10 { await room.visit() }
                count.add()
            }
            simulation.runUntilIdle()
            guard count.value == 2 else { throw Broken(description: "one is lost") }
        }
        guard case .failed(let finding) = result else { return #expect(Bool(false), "\(result)") }
        #expect(finding.token.departures.count == 1, "\(finding)")
    }

    @Test("a task that returns from another thread may continue before one that has waited")
    func returning() {
        var orders: Set<String> = []
        _ = Exploration(schedules: 200).run { simulation in
            let log = Log<String>()
            let thread = LoopThread(name: "other") { $0.add(CustomSource(), forMode: .default) }
            let room = Room(on: thread.remote.executor())
            simulation.loop.task(name: "a") {
                await room.visit()
                log("a")
            }
            simulation.loop.task(name: "b") { log("b") }
            simulation.runUntilIdle()
            orders.insert(log.entries.joined())
        }
        #expect(orders == ["ab", "ba"])
    }

    @Test("a picture marks where a thread other than the usual one continues")
    func marked() throws {
        struct Unusual: Error {}
        let result = Exploration(schedules: 500).run { if order($0) == "bbaa" { throw Unusual() } }
        guard case .failed(let finding) = result else { return #expect(Bool(false), "\(result)") }
        #expect(finding.token.departures.contains { $0.place == "*a" }, "\(finding)")
        #expect(finding.picture.contains("continues ← instead of a"), "\(finding)")
        #expect(finding.nearest != nil, "\(finding)")
    }

    @Test("posts of one thread keep their order, and so do timers of one loop with equal dates")
    func promises() {
        let result = Exploration(schedules: 500).run { simulation in
            let (posts, timers) = (Log<Int>(), Log<Int>())
            let thread = LoopThread(name: "other") { loop in
                loop.add(CustomSource(), forMode: .default)
                for number in 0..<3 { loop.perform(afterDelay: .seconds(1)) { timers.append(number) } }
            }
            simulation.loop.task {
                for number in 0..<5 {
                    thread.remote.perform { _ in posts.append(number) }
                    await Task.yield()
                }
            }
            simulation.loop.task { for _ in 0..<5 { await Task.yield() } }
            simulation.runUntilIdle()
            guard posts.entries == Array(0..<5), timers.entries == Array(0..<3) else {
                throw Broken(description: "\(posts.entries) \(timers.entries)")
            }
        }
        guard case .passed(500) = result else { return #expect(Bool(false), "\(result)") }
    }

    @Test("possibilities: the first one without exploration, each one with it, and a token says which")
    func possibilities() throws {
        withSimulation { simulation in
            #expect(simulation.choice("size", of: [3, 1, 2]) == 3)
            #expect(!simulation.mayHappen("a fault"))
        }
        func explore(for wanted: Int) -> Exploration.Finding? {
            let result = Exploration(schedules: 200).run { simulation in
                let size = simulation.choice("size", of: [3, 1, 2])
                if simulation.mayHappen("a fault") && size == wanted { throw Broken(description: "\(size)") }
            }
            guard case .failed(let finding) = result else { return nil }
            return finding
        }
        #expect("\(try #require(explore(for: 2)).token.departures)" == "[size@0=2, a fault@0=1]")
        #expect("\(try #require(explore(for: 3)).token.departures)" == "[a fault@0=1]")
    }

    @Test("an event that may happen at any moment happens once, between two steps, and never without exploration")
    func occasions() throws {
        func run(_ simulation: Simulation) throws {
            let (isClosed, isMissed) = (Flag(), Flag())
            simulation.mayHappen("the file is closed") { isClosed.set() }
            simulation.loop.task(name: "watcher") {
                for _ in 0..<5 { await Task.yield() }
                guard !isClosed.isSet else { return }
                await Task.yield()
                if isClosed.isSet { isMissed.set() }
            }
            simulation.runUntilIdle()
            if isMissed.isSet { throw Broken(description: "it was closed in between") }
        }
        try withSimulation { try run($0) }
        func explore() -> Exploration.Finding? {
            guard case .failed(let finding) = Exploration(schedules: 500).run(run) else { return nil }
            return finding
        }
        let finding = try #require(explore())
        #expect(
            finding.token.departures.count == 1 && finding.token.departures[0].place == "watcher: the file is closed")
    }

    @Test("a possible event may happen when a thread has just been set up")
    func occasionAfterSetUp() throws {
        let result = Exploration(schedules: 200).run { simulation in
            let (isSetUp, hasBegun, isBetween) = (Flag(), Flag(), Flag())
            simulation.mayHappen("a look") { if isSetUp.isSet && !hasBegun.isSet { isBetween.set() } }
            let thread = LoopThread(name: "a") { loop in
                loop.perform { hasBegun.set() }
                isSetUp.set()
            }
            simulation.runUntilIdle()
            thread.join()
            if isBetween.isSet { throw Broken(description: "it has not begun") }
        }
        guard case .failed(let finding) = result else { return #expect(Bool(false), "\(result)") }
        #expect(finding.token.departures.map(\.place) == ["a: a look"])
    }

    @Test("schedules that failed before come first, and then others near to them")
    func former() throws {
        let token = try #require(ScheduleToken("0:size@0=5;a fault@0=1"))
        func explore(size wanted: Int) -> Int? {
            let result = Exploration(schedules: 400, former: [token]).run { simulation in
                let size = simulation.choice("size", of: Array(0..<100))
                if simulation.mayHappen("a fault") && size == wanted { throw Broken(description: "\(size)") }
            }
            guard case .failed(let finding) = result else { return nil }
            return finding.schedules
        }
        #expect(explore(size: 5) == 1)
        #expect(explore(size: 101) == nil)
    }

    @Test("a task that others wait for without resting is not held back for ever")
    func spinning() {
        let result = Exploration(schedules: 300).run { simulation in
            let isSet = Flag()
            simulation.loop.task { while !isSet.isSet { await Task.yield() } }
            simulation.loop.task {
                await Task.yield()
                isSet.set()
            }
            simulation.runUntilIdle()
        }
        guard case .passed(300) = result else { return #expect(Bool(false), "\(result)") }
    }
}
