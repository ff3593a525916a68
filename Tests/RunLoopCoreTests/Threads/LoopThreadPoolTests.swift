import Glibc
import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("LoopThreadPool", .timeLimit(.minutes(15)))
struct LoopThreadPoolTests {
    /// Returns the system's name of the calling thread.
    private static func threadName() -> String {
        String(contents(of: "/proc/thread-self/comm").dropLast())
    }

    /// Makes an active source that works for a while at every delivery.
    private func slow(
        _ name: String, _ queue: DeliveryQueue, _ log: Log<String>, _ simulation: Simulation,
        after delay: Int, every interval: Int?, for duration: Int
    ) -> TimerSource {
        let source = TimerSource(queue: queue, name: name)
        source.setEventHandler { source in
            log.note("\(name) \(source.data)", simulation)
            simulation.spend(.milliseconds(duration))
        }
        source.schedule(after: .milliseconds(delay), repeating: interval.map { .milliseconds($0) })
        source.activate()
        return source
    }

    @Test("two slow sources on two threads run side by side")
    func sideBySide() {
        withSimulation { simulation in
            let log = Log<String>()
            let queue = DeliveryQueue.pool(LoopThreadPool(maximumThreads: 2))
            let sources = ["a", "b"].map {
                slow($0, queue, log, simulation, after: 100, every: 100, for: 80)
            }
            simulation.advance(to: ms(350))
            #expect(log.entries.sorted() == ["100: a 1", "100: b 1", "200: a 1", "200: b 1", "300: a 1", "300: b 1"])
            withExtendedLifetime(sources) {}
        }
    }

    @Test("one source never delivers twice at a time, however many threads are free")
    func serial() {
        withSimulation { simulation in
            let log = Log<String>()
            let queue = DeliveryQueue.pool(LoopThreadPool(maximumThreads: 4))
            let source = slow("a", queue, log, simulation, after: 10, every: 10, for: 25)
            simulation.advance(to: ms(100))
            #expect(log.entries == ["10: a 1", "35: a 2", "60: a 3", "85: a 2"])
            withExtendedLifetime(source) {}
        }
    }

    @Test("more sources than threads wait in order, and fires that come meanwhile are merged")
    func waitInOrder() {
        withSimulation { simulation in
            let log = Log<String>()
            let queue = DeliveryQueue.pool(LoopThreadPool(maximumThreads: 2))
            let sources = [
                slow("a", queue, log, simulation, after: 10, every: nil, for: 100),
                slow("b", queue, log, simulation, after: 20, every: nil, for: 100),
                slow("c", queue, log, simulation, after: 40, every: 10, for: 50),
                slow("d", queue, log, simulation, after: 30, every: 20, for: 5),
            ]
            simulation.advance(to: ms(130))
            #expect(log.entries == ["10: a 1", "20: b 1", "110: d 5", "115: c 8", "130: d 1"])
            withExtendedLifetime(sources) {}
        }
    }

    @Test("threads are named after the pool")
    func names() {
        let names = Log<String>()
        let pool = LoopThreadPool(name: "crew", maximumThreads: 2)
        #expect(pool.name == "crew")
        for _ in 0..<10 { DeliveryQueue.pool(pool).asyncAfter(.zero) { names(Self.threadName()) } }
        _ = eventually("the blocks run") { names.entries.count == 10 }
        #expect(Set(names.entries).isSubset(of: ["crew-1", "crew-2"]))
        pool.stop()
        pool.join()
    }

    @Test("the pool starts no more threads than it needs")
    func noMoreThreadsThanNeeded() {
        withSimulation(traced: true) { simulation in
            let log = Log<String>()
            let queue = DeliveryQueue.pool(LoopThreadPool(name: "crew", maximumThreads: 8))
            let sources = [10, 30, 50, 55].map {
                slow("s", queue, log, simulation, after: $0, every: nil, for: 10)
            }
            simulation.advance(to: ms(100))
            let threads = simulation.trace.filter { $0.contains("deliver") }.map { $0.split(separator: " ")[1] }
            #expect(threads == ["crew-1", "crew-1", "crew-1", "crew-2"])
            withExtendedLifetime(sources) {}
        }
    }

    @Test("handlers that block leave the other threads to the others")
    func blocking() {
        let pool = LoopThreadPool(name: "blocked", maximumThreads: 3)
        let queue = DeliveryQueue.pool(pool)
        let gate = Flag()
        let blocked = Counter()
        for _ in 0..<2 {
            queue.asyncAfter(.zero) {
                blocked.add()
                while !gate.isSet { sched_yield() }
                blocked.add(-1)
            }
        }
        _ = eventually("two are blocked") { blocked.value == 2 }
        let calls = Counter()
        for _ in 0..<20 { queue.asyncAfter(.microseconds(100)) { calls.add() } }
        _ = eventually("the third thread serves") { calls.value == 20 }
        #expect(blocked.value == 2)
        gate.set()
        _ = eventually("they end") { blocked.value == 0 }
        pool.stop()
        pool.join()
    }

    @Test("all handlers that block at the same time have a thread each, up to the greatest number")
    func barrier() {
        let pool = LoopThreadPool(name: "barrier", maximumThreads: 4)
        let arrived = Counter()
        let passed = Counter()
        for _ in 0..<4 {
            DeliveryQueue.pool(pool).asyncAfter(.zero) {
                arrived.add()
                if eventually("the others arrive", { arrived.value == 4 }) { passed.add() }
            }
        }
        _ = eventually("all pass") { passed.value == 4 }
        pool.stop()
        pool.join()
    }

    @Test("a pool ends: the running handler finishes, nothing else is delivered, and everything is released")
    func stop() {
        withSimulation { simulation in
            let log = Log<String>()
            let pool = LoopThreadPool(maximumThreads: 1)
            let queue = DeliveryQueue.pool(pool)
            func post(_ name: String, _ delay: Int) {
                let token = Token { log.note("\(name) released", simulation) }
                queue.asyncAfter(.milliseconds(delay)) {
                    simulation.spend(.milliseconds(50))
                    token.touch()
                    log.note(name, simulation)
                }
            }
            post("runs", 10)
            post("waits", 20)
            post("is due later", 1000)
            simulation.advance(to: ms(30))
            pool.stop()
            pool.join()
            pool.join()
            #expect(simulation.now == ms(60))
            #expect(
                log.entries.sorted() == [
                    "30: is due later released", "30: waits released", "60: runs", "60: runs released",
                ])
            post("is late", 10)
            #expect(log.entries.last == "60: is late released")
            simulation.advance(by: .seconds(2))
            #expect(log.entries.count == 5)
        }
    }

    @Test("a pool that is dropped while busy ends when its sources have gone")
    func dropped() {
        let log = Log<String>()
        withSimulation { simulation in
            func begin() -> (Weak<LoopThreadPool>, TimerSource) {
                let pool = LoopThreadPool(name: "dropped", maximumThreads: 2)
                let source = slow("a", .pool(pool), log, simulation, after: 10, every: 10, for: 25)
                return (Weak(pool), source)
            }
            func hold() -> Weak<LoopThreadPool> {
                let (pool, source) = begin()
                simulation.advance(to: ms(20))
                #expect(!pool.isGone)
                withExtendedLifetime(source) {}
                return pool
            }
            let pool = hold()
            simulation.advance(to: ms(100))
            #expect(pool.isGone)
            #expect(log.entries == ["10: a 1"])
        }
    }

    @Test("real pools that are dropped in all states leave no thread behind")
    func noThreadStays() {
        let ended = Counter()
        final class ThreadEnd: Sendable {
            let ended: Counter
            init(_ ended: Counter) { self.ended = ended }
            deinit { ended.add() }
        }
        let calls = Counter()
        let pools = Log<Weak<LoopThreadPool>>()
        for round in 0..<100 {
            let pool = LoopThreadPool(name: "short", maximumThreads: 2)
            let end = ThreadEnd(ended)
            pools.append(Weak(pool))
            for _ in 0..<3 {
                DeliveryQueue.pool(pool).asyncAfter(.zero) {
                    // Released with the blocks of the thread's loop.
                    RunLoop.current.perform(inModes: .tracking) { _ = end }
                    calls.add()
                }
            }
            if round % 2 == 0 { _ = eventually("they run") { calls.value >= 3 } }
            if round % 3 == 0 { pool.stop() }
        }
        _ = eventually("all threads have ended") { ended.value == 100 }
        #expect(pools.entries.allSatisfy { $0.isGone })
    }

    @Test("a handler that stops the loop of its thread does not take the thread from the pool")
    func handlerStopsLoop() {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(queue: .pool(LoopThreadPool(maximumThreads: 1)))
            source.setEventHandler { source in
                log.note(source)
                RunLoop.current.stop()
                RunLoop.current.remote.stop()
            }
            source.schedule(after: .milliseconds(10), repeating: .milliseconds(10))
            source.activate()
            simulation.advance(to: ms(40))
            #expect(log.entries == ["10: 1", "20: 1", "30: 1", "40: 1"])
        }
    }

    @Test("a handler may use its thread's loop, and a nested run there delivers nothing of the pool's")
    func nestedRun() {
        withSimulation { simulation in
            let log = Log<String>()
            let source = TimerSource(queue: .pool(LoopThreadPool(maximumThreads: 1)))
            source.setEventHandler { source in
                log.note(source)
                let loop = RunLoop.current
                Timer.scheduledTimer(withTimeInterval: .milliseconds(7), repeats: false) { _ in
                    log.note("timer", simulation)
                }
                loop.run(in: .default, until: loop.now + .milliseconds(25))
                log.note("end", simulation)
            }
            source.schedule(after: .milliseconds(10), repeating: .milliseconds(10))
            source.activate()
            simulation.advance(to: ms(59))
            #expect(log.entries == ["10: 1", "17: timer", "35: end", "35: 2", "42: timer"])
        }
    }

    @Test("a pool in a simulation is deterministic: the same trace each time")
    func deterministic() {
        func trace() -> [String] {
            withSimulation(traced: true) { simulation in
                let queue = DeliveryQueue.pool(LoopThreadPool(name: "crew", maximumThreads: 3))
                let sources = (1...7).map { number in
                    let source = TimerSource(queue: number % 3 == 0 ? .background : queue, name: "s\(number)")
                    source.setEventHandler { source in
                        simulation.note("begin")
                        simulation.spend(.milliseconds(number * 5))
                        if source.data > 2 { source.schedule(after: .milliseconds(3), repeating: .milliseconds(11)) }
                        simulation.note("end")
                    }
                    source.schedule(after: .milliseconds(number), repeating: .milliseconds(10))
                    source.activate()
                    return source
                }
                simulation.advance(to: ms(500))
                withExtendedLifetime(sources) {}
                return simulation.trace
            }
        }
        let first = trace()
        #expect(first.count { $0.contains("deliver") } > 100)
        #expect(Set(first.filter { $0.contains("deliver") }.map { $0.split(separator: " ")[1] }).count >= 4)
        for _ in 0..<5 { #expect(trace() == first) }
    }

    // MARK: Starvation

    @Test("runUntilIdle waits for the pool's deliveries, and is idle although the pool exists")
    func runUntilIdle() {
        withSimulation { simulation in
            let log = Log<String>()
            DeliveryQueue.background.asyncAfter(.seconds(3)) {
                log.note("pool", simulation)
                DeliveryQueue.main.asyncAfter(.seconds(2)) { log.note("main", simulation) }
            }
            #expect(simulation.runUntilIdle() == .done)
            #expect(log.entries == ["3000: pool", "5000: main"])
            // And again: nothing has ended the pool.
            DeliveryQueue.background.asyncAfter(.seconds(1)) { log.note("again", simulation) }
            #expect(simulation.runUntilIdle() == .done)
            #expect(log.entries.last == "6000: again")
            let source = TimerSource(.background, log, after: 1000, every: 1000)
            guard
                case .idle(until: .init(nanoseconds: 9_000_000_000), _) = simulation.runUntilIdle(
                    limit: .milliseconds(2500))
            else {
                Issue.record("\(simulation.standing)")
                return
            }
            #expect(simulation.waits.isEmpty)
            #expect(log.entries.suffix(2) == ["7000: 1", "8000: 1"])
            withExtendedLifetime(source) {}
        }
    }

    @Test("a LoopThread that waits for an event that never comes is reported as starved, and the pool stays usable")
    func starvedThread() {
        withSimulation { simulation in
            let log = Log<String>()
            DeliveryQueue.background.asyncAfter(.milliseconds(10)) { log.note("first", simulation) }
            let thread = LoopThread(name: "waits") { loop in
                loop.add(CustomSource(), forMode: .default)
                #expect(loop.run(in: .default) == .starved)
                log.note("starved", simulation)
                DeliveryQueue.background.asyncAfter(.milliseconds(10)) { log.note("second", simulation) }
            }
            thread.join()
            DeliveryQueue.background.asyncAfter(.milliseconds(10)) { log.note("third", simulation) }
            simulation.advance(by: .milliseconds(10))
            #expect(log.entries == ["10: first", "10: starved", "20: second", "30: third"])
        }
    }

    @Test("joining a pool that was not stopped returns on virtual time once the pool starves")
    func joinWithoutStop() {
        withSimulation { simulation in
            let pool = LoopThreadPool(maximumThreads: 1)
            DeliveryQueue.pool(pool).asyncAfter(.milliseconds(10)) {}
            pool.join()
            #expect(simulation.now == ms(10))
        }
    }

    @Test("a pool without threads is refused with a sentence")
    func noThreads() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            _ = LoopThreadPool(maximumThreads: 0)
        }
        let isSaid = says("a pool needs at least one thread; without any, use a loop's queue", result)
        #expect(isSaid)
    }
}
