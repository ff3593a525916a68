import RunLoopKit
import TestSupport
import Testing

@testable import RunLoopSimulation

/// Two timers of a second, each of which works for two: the loop always has something to do.
private func overload(_ loop: RunLoop, _ simulation: Simulation) {
    for _ in 0..<2 {
        loop.add(
            Timer(timeInterval: .seconds(1), repeats: true) { _ in simulation.spend(.seconds(2)) }, forMode: .default)
    }
}

@Suite("A simulation never hangs in silence: it ends, or says who waits for whom", .timeLimit(.minutes(5)))
struct SimulationEndTests {
    @Test("when a simulation returns, the system has ended its threads, with their local memory")
    func localMemory() {
        let released = Counter()
        withSimulation { simulation in
            for end in 1...3 {
                _ = LoopThread(name: "thread \(end)") { loop in
                    LocalMemory.make(countedBy: released)
                    // The last one is ended by the simulation.
                    if end < 3 {
                        loop.perform(at: seconds(Double(end))) {}
                    } else {
                        loop.add(CustomSource(), forMode: .default)
                    }
                }
            }
            simulation.advance(by: .seconds(10))
        }
        #expect(released.value == 3)
    }

    // MARK: The limit of runUntilIdle

    @Test("work beyond the limit of runUntilIdle is finished")
    func workBeyondLimit() {
        withSimulation { simulation in
            simulation.loop.perform(at: seconds(1)) { simulation.spend(.seconds(5)) }
            #expect(simulation.runUntilIdle(limit: .seconds(2)) == .done)
            #expect(simulation.now == seconds(6))
        }
    }

    @Test("while the thread of runUntilIdle works beyond its limit, the others continue, and none of them ends")
    func othersBeyondLimit() {
        let ticks = Log<RunLoop.Instant>()
        withSimulation { simulation in
            let worker = LoopThread(name: "worker") { loop in
                Timer.scheduledTimer(withTimeInterval: .seconds(4), repeats: true) { _ in ticks.append(loop.now) }
            }
            simulation.loop.perform(at: seconds(1)) { simulation.spend(.seconds(5)) }
            let standing = simulation.runUntilIdle(limit: .seconds(2))
            guard case .idle(until: seconds(8), _) = standing else {
                Issue.record("\(standing)")
                return
            }
            #expect(simulation.now == seconds(6))
            simulation.advance(to: seconds(9))
            withExtendedLifetime(worker) {}
        }
        #expect(ticks.entries == [4, 8].map(seconds))
    }

    @Test("the limit ends runUntilIdle of a loop that always has something to do")
    func overloadedIdle() {
        withSimulation { simulation in
            overload(simulation.loop, simulation)
            guard case .idle(until: let date, _) = simulation.runUntilIdle(limit: .seconds(20)) else {
                Issue.record("not idle")
                return
            }
            #expect(date == simulation.now)
            #expect(simulation.waits.count == 2)
            #expect(simulation.now > seconds(20) && simulation.now < seconds(30))
        }
    }

    @Test("the limit of runUntilIdle outlives another runUntilIdle in a handler, which keeps it as well")
    func nestedLimits() {
        withSimulation { simulation in
            var nested: [RunLoop.Instant] = []
            Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in }
            Timer.scheduledTimer(withTimeInterval: .seconds(4), repeats: true) { _ in
                simulation.runUntilIdle(limit: .seconds(nested.isEmpty ? 2 : 100))
                nested.append(simulation.now)
            }
            guard case .idle = simulation.runUntilIdle(limit: .seconds(10)) else {
                Issue.record("not idle")
                return
            }
            #expect(nested == [6, 10].map(seconds))
            #expect(simulation.now == seconds(10))
        }
    }

    @Test("beyond the limit of runUntilIdle its thread still waits for a block, and for the end of a thread")
    func waitsBeyondLimit() {
        let log = Log<String>()
        withSimulation { simulation in
            let busy = LoopThread(name: "busy") { loop in
                loop.add(CustomSource(), forMode: .default)
                loop.perform { simulation.spend(.seconds(5)) }
            }
            let ending = LoopThread(name: "ending") { loop in loop.perform { simulation.spend(.seconds(9)) } }
            simulation.loop.perform {
                do { try busy.remote.performAndWait { log("ran \($0.now)") } } catch { log("\(error)") }
                ending.join()
                log("joined \(simulation.now)")
            }
            guard case .stuck(let waits) = simulation.runUntilIdle(limit: .seconds(2)) else {
                Issue.record("\(simulation.standing)")
                return
            }
            #expect(waits.map(\.thread) == ["busy"])
        }
        #expect(log.entries == ["ran 5.000000000", "joined 9.000000000"])
    }

    @Test("a limit applies to its own thread, and cuts no other thread short")
    func limitOfWorker() {
        let ended = Log<RunLoop.Instant>()
        withSimulation { simulation in
            let worker = LoopThread(name: "worker") { loop in
                Timer.scheduledTimer(withTimeInterval: .seconds(3), repeats: true) { _ in }
                loop.perform {
                    simulation.runUntilIdle(limit: .seconds(10))
                    ended.append(simulation.now)
                }
            }
            simulation.advance(to: seconds(20))
            #expect(simulation.now == seconds(20))
            withExtendedLifetime(worker) {}
        }
        #expect(ended.entries == [seconds(9)])
    }

    // MARK: Loops that have more to do than they can

    @Test("advance returns although two loops always have something to do")
    func overloadedAdvance() {
        withSimulation { simulation in
            overload(simulation.loop, simulation)
            let worker = LoopThread(name: "worker") { _ in
                Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in }
            }
            simulation.advance(to: seconds(20))
            #expect(simulation.now >= seconds(20) && simulation.now < seconds(30))
            withExtendedLifetime(worker) {}
        }
    }

    @Test("a simulation ends although one of its threads always has something to do")
    func overloadedThread() {
        let released = Flag()
        withSimulation { simulation in
            let worker = LoopThread(name: "worker") { loop in
                let token = Token { released.set() }
                overload(loop, simulation)
                loop.perform(at: seconds(1_000_000)) { token.touch() }
            }
            simulation.advance(to: seconds(20))
            withExtendedLifetime(worker) {}
        }
        #expect(released.isSet)
    }

    @Test("a stopped thread ends although more is posted to it than it can do; every block it accepted has run")
    func flood() {
        let (accepted, ran) = (Counter(), Counter())
        withSimulation { simulation in
            let worker = LoopThread(name: "worker") { $0.add(CustomSource(), forMode: .default) }
            let flooder = LoopThread(name: "flooder") { _ in
                Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in
                    let isAccepted = worker.remote.perform { _ in
                        simulation.spend(.seconds(2))
                        ran.add()
                    }
                    if isAccepted { accepted.add() }
                }
            }
            simulation.advance(to: seconds(20))
            worker.stop()
            worker.join()
            #expect(ran.value == accepted.value)
            withExtendedLifetime(flooder) {}
        }
    }

    // MARK: Runs on threads that are to end

    @Test("a thread that moves the time in a handler can be stopped, with and without something in its loop")
    func stopsWhileAdvancing() {
        withSimulation { simulation in
            let runs: [@Sendable () -> Void] = [
                { simulation.advance(by: .seconds(10)) }, { simulation.runUntilIdle() },
            ]
            for isEmpty in [true, false] {
                for runs in runs {
                    let worker = LoopThread(name: "worker") { loop in
                        if !isEmpty { Timer.scheduledTimer(withTimeInterval: .seconds(3), repeats: true) { _ in } }
                        loop.perform(runs)
                    }
                    let start = simulation.now
                    simulation.advance(by: .seconds(2))
                    worker.stop()
                    worker.join()
                    #expect(simulation.now == start + .seconds(2))
                }
            }
        }
    }

    @Test("a simulation ends while one of its threads moves the time and has nothing in its loop")
    func endsWhileAdvancing() {
        let returned = Flag()
        withSimulation { simulation in
            let worker = LoopThread(name: "worker") { loop in
                loop.perform {
                    simulation.advance(by: .seconds(10))
                    returned.set()
                }
            }
            simulation.advance(by: .seconds(2))
            withExtendedLifetime(worker) {}
        }
        #expect(returned.isSet)
    }

    // MARK: Threads that wait for one another

    @Test("two threads that join each other are reported at once, even while others continue")
    func joinCircle() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            func joinEachOther() {
                withSimulation { simulation in
                    let threads = Log<LoopThread>()
                    for (index, name) in ["a", "b"].enumerated() {
                        let thread = LoopThread(name: name) { loop in
                            loop.perform(afterDelay: .seconds(index + 1)) { threads.entries[1 - index].join() }
                        }
                        threads.append(thread)
                    }
                    Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in }
                    simulation.advance(by: .seconds(2))
                }
            }
            joinEachOther()
        }
        let isSaid = says(
            "can never go on: \"b\" waits for the end of \"a\", \"a\" waits for the end of \"b\"", result)
        #expect(isSaid)
    }

    @Test("a block that joins the thread that waits for it is reported when nothing else can happen")
    func joinOfWaiter() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            func joinWaiter() {
                withSimulation { simulation in
                    let threads = Log<LoopThread>()
                    let runner = LoopThread(name: "runner") { $0.add(CustomSource(), forMode: .default) }
                    let waiter = LoopThread(name: "waiter") { loop in
                        loop.perform(afterDelay: .seconds(1)) {
                            try? runner.remote.performAndWait { _ in threads.entries[0].join() }
                        }
                    }
                    threads.append(waiter)
                    waiter.join()
                }
            }
            joinWaiter()
        }
        let isSaid = says(
            "can never go on: \"main\" waits for the end of \"waiter\", \"runner\" waits for the end of \"waiter\", "
                + "\"waiter\" waits for a block that \"runner\" is running", result)
        #expect(isSaid)
    }

    @Test("endless work is reported")
    func endlessWork() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            func workForEver() {
                withSimulation { $0.spend(.seconds(Int64.max)) }
            }
            workForEver()
        }
        let isSaid = says("can never go on: \"main\" works for ever", result)
        #expect(isSaid)
    }

    @Test("a thread that waits for one that waits for one that has ended gets the error of that")
    func chainToEnded() {
        let errors = Log<String>()
        withSimulation { simulation in
            let ended = LoopThread(name: "ended") { _ in }
            let middle = LoopThread(name: "middle") { $0.add(CustomSource(), forMode: .default) }
            ended.join()
            do {
                try middle.remote.performAndWait { _ in try ended.remote.performAndWait { _ in } }
            } catch {
                errors("\(error)")
            }
            withExtendedLifetime(simulation) {}
        }
        #expect(errors.entries == ["\(RunLoop.WaitError.loopEnded(loop: "ended"))"])
    }

    @Test("a thread outside of the simulation that joins one of its threads takes no turn")
    func joinFromOutside() {
        withSimulation { simulation in
            let worker = LoopThread(name: "worker") { loop in
                Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in }
            }
            let hasJoined = Flag()
            let isJoining = Flag()
            let outside = PlainThread {
                isJoining.set()
                worker.join()
                hasJoined.set()
            }
            #expect(eventually("the other thread runs") { isJoining.isSet })
            for _ in 0..<1_000 { simulation.advance(by: .seconds(1)) }
            #expect(simulation.now == seconds(1_000))
            #expect(!hasJoined.isSet)
            worker.stop()
            worker.join()
            outside.join()
        }
    }
}
