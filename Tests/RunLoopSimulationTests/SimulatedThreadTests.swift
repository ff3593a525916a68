import Glibc
import RunLoopKit
import Synchronization
import TestSupport
import Testing

@testable import RunLoopSimulation

@Suite("Several threads on one virtual timeline", .timeLimit(.minutes(15)))
struct SimulatedThreadTests {
    @Test("while the main loop works for five seconds, a worker ticks on time")
    func busyMain() {
        let ticks = Log<RunLoop.Instant>()
        let mainTicks = Log<RunLoop.Instant>()
        withSimulation { simulation in
            let worker = LoopThread(name: "worker") { loop in
                Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in ticks.append(loop.now) }
            }
            Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in
                mainTicks.append(simulation.now)
                if mainTicks.entries.count == 2 { simulation.spend(.seconds(5)) }
            }
            simulation.advance(to: seconds(9))
            worker.stop()
            worker.join()
        }
        #expect(ticks.entries == (1...9).map { seconds(Double($0)) })
        // The date at which the work ends is lost as well (R116).
        #expect(mainTicks.entries == [1, 2, 8, 9].map(seconds))
    }

    @Test("a busy worker does not hold the others up")
    func busyWorker() {
        let (first, second) = (Log<RunLoop.Instant>(), Log<RunLoop.Instant>())
        withSimulation { simulation in
            let busy = LoopThread(name: "busy") { loop in
                Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in
                    first.append(loop.now)
                    simulation.spend(.seconds(1.5))
                }
            }
            let quick = LoopThread(name: "quick") { loop in
                Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in second.append(loop.now) }
            }
            simulation.advance(to: seconds(6))
            withExtendedLifetime((busy, quick)) {}
        }
        #expect(first.entries == [1, 3, 5].map(seconds))
        #expect(second.entries == [1, 2, 3, 4, 5, 6].map(seconds))
    }

    @Test("each thread keeps its thread-local values, also across a rest within a handler and a nested run")
    func threadLocals() {
        let log = Log<String>()
        withSimulation { simulation in
            let main = pthread_self()
            var made = pthread_key_t()
            pthread_key_create(&made, nil)
            let key = made
            let threads = (2...9).map { number in
                LoopThread(name: "t\(number)") { loop in
                    let own = pthread_self()
                    if own == main { log("\(number) is main") }
                    pthread_setspecific(key, UnsafeRawPointer(bitPattern: number))
                    Timer.scheduledTimer(withTimeInterval: .milliseconds(number), repeats: true) { _ in
                        ThreadLocal.$number.withValue(number) {
                            if loop.now.nanoseconds.isMultiple(of: 2) {
                                simulation.spend(.milliseconds(1))
                            } else {
                                loop.run(in: "none", until: loop.now + .milliseconds(3))
                            }
                            let specific = Int(bitPattern: pthread_getspecific(key))
                            if pthread_self() != own || specific != number || ThreadLocal.number != number {
                                log("\(number) is another")
                            }
                        }
                    }
                }
            }
            simulation.advance(by: .seconds(1))
            #expect(pthread_self() == main && pthread_getspecific(key) == nil && ThreadLocal.number == 0)
            for thread in threads { thread.stop() }
            for thread in threads { thread.join() }
            pthread_key_delete(key)
        }
        #expect(log.entries == [])
    }

    private enum ThreadLocal {
        @TaskLocal static var number = 0
    }

    @Test("locks that the kernel hands over are shared with a thread outside")
    func kernelLocks() {
        let lock = Mutex(())
        let isOver = Atomic(false)
        @Sendable func hold() {
            lock.withLock { _ in for _ in 0..<20 { sched_yield() } }
        }
        let outside = LoopThread(name: "outside") { _ in while !isOver.load(ordering: .relaxed) { hold() } }
        withSimulation { simulation in
            let threads = (1...3).map { number in
                LoopThread(name: "inside") { _ in
                    Timer.scheduledTimer(withTimeInterval: .milliseconds(number), repeats: true) { _ in hold() }
                }
            }
            simulation.advance(by: .milliseconds(500))
            withExtendedLifetime(threads) {}
        }
        isOver.store(true, ordering: .relaxed)
        outside.join()
    }

    @Test("threads whose deadlines are equal take turns in the order in which they were started")
    func equalDeadlines() {
        let log = Log<String>()
        withSimulation { simulation in
            let threads = ["b", "a", "c"].map { name in
                LoopThread(name: name) { _ in
                    Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in log(name) }
                }
            }
            Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in log("main") }
            simulation.advance(to: seconds(2.5))
            withExtendedLifetime(threads) {}
        }
        #expect(log.entries == ["main", "b", "a", "c", "main", "b", "a", "c"])
    }

    @Test("posts between threads take no time and arrive in order")
    func posts() {
        let log = Log<String>()
        withSimulation { simulation in
            let mainRemote = simulation.loop.remote
            let worker = LoopThread(name: "worker") { loop in
                loop.add(CustomSource(), forMode: .default)
            }
            let remote = worker.remote
            for number in 0..<3 {
                simulation.loop.perform(afterDelay: .seconds(number)) {
                    remote.perform { loop in
                        log("worker \(number) \(loop.now)")
                        mainRemote.perform { log("main \(number) \($0.now)") }
                    }
                }
            }
            simulation.runUntilIdle()
        }
        #expect(
            log.entries == [
                "worker 0 0.000000000", "main 0 0.000000000", "worker 1 1.000000000", "main 1 1.000000000",
                "worker 2 2.000000000", "main 2 2.000000000",
            ])
    }

    @Test("a worker's posts to a main loop with nothing in it arrive when they are posted, not later")
    func postsToEmptyLoop() {
        let log = Log<String>()
        withSimulation { simulation in
            let mainRemote = simulation.loop.remote
            let worker = LoopThread(name: "worker") { loop in
                Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in
                    mainRemote.perform { log("main \($0.now)") }
                }
            }
            simulation.advance(to: seconds(2.5))
            simulation.advance(to: seconds(3.5))
            log("advanced")
            worker.stop()
            worker.join()
        }
        #expect(log.entries == ["main 1.000000000", "main 2.000000000", "main 3.000000000", "advanced"])
    }

    @Test("a post from a simulated thread to a main loop with nothing in it happens before runUntilIdle returns")
    func postBeforeIdle() {
        let performed = Log<RunLoop.Instant>()
        withSimulation { simulation in
            let mainRemote = simulation.loop.remote
            let worker = LoopThread(name: "worker") { loop in
                loop.perform(afterDelay: .seconds(2)) { mainRemote.perform { performed.append($0.now) } }
            }
            #expect(simulation.runUntilIdle() == .done)
            #expect(performed.entries == [seconds(2)])
            worker.join()
        }
    }

    @Test("joining a simulated thread takes the virtual time that the thread takes")
    func join() {
        let ended = Flag()
        withSimulation { simulation in
            let worker = LoopThread(name: "worker") { loop in
                var ticks = 0
                let token = Token { ended.set() }
                Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { timer in
                    token.touch()
                    ticks += 1
                    if ticks == 3 { timer.invalidate() }
                }
            }
            worker.join()
            #expect(ended.isSet)
            #expect(simulation.now == seconds(3))
            worker.join()
            #expect(simulation.now == seconds(3))
        }
    }

    @Test("a simulated thread may join another one, and several may join the same")
    func joinFromThreads() {
        let log = Log<String>()
        withSimulation { simulation in
            let worker = LoopThread(name: "worker") { loop in
                loop.perform(afterDelay: .seconds(3)) { log("worker \(loop.now)") }
            }
            let joiners = ["first", "second"].map { name in
                LoopThread(name: name) { loop in
                    loop.perform(afterDelay: .seconds(1)) {
                        worker.join()
                        log("\(name) \(loop.now)")
                    }
                }
            }
            for joiner in joiners { joiner.join() }
            #expect(simulation.now == seconds(3))
        }
        #expect(log.entries == ["worker 3.000000000", "first 3.000000000", "second 3.000000000"])
    }

    @Test("a simulated thread ends on stop, also out of a nested run")
    func stop() {
        let ran = Counter()
        withSimulation { simulation in
            let worker = LoopThread(name: "worker") { loop in
                loop.add(CustomSource(), forMode: [.default, .tracking])
                loop.perform(afterDelay: .seconds(1)) {
                    ran.add()
                    loop.run(in: .tracking)
                }
                Timer.scheduledTimer(withTimeInterval: .seconds(10), repeats: true) { _ in ran.add() }
            }
            simulation.advance(to: seconds(5))
            worker.stop()
            worker.join()
            #expect(ran.value == 1)
            #expect(simulation.now == seconds(5))
            #expect(worker.remote.perform { _ in } == false)
        }
    }

    @Test("withLoopThread lives on the simulation's time as well")
    func scoped() {
        let ticks = Log<RunLoop.Instant>()
        withSimulation { simulation in
            withLoopThread(name: "worker") { loop in
                Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in ticks.append(loop.now) }
            } _: { _ in
                simulation.advance(by: .seconds(3.5))
            }
            #expect(simulation.now == seconds(3.5))
        }
        #expect(ticks.entries == [1, 2, 3].map(seconds))
    }

    @Test("a thread started by a thread of the simulation is of the simulation too")
    func grandchild() {
        let log = Log<String>()
        withSimulation { simulation in
            let parent = LoopThread(name: "parent") { loop in
                loop.perform(afterDelay: .seconds(1)) {
                    let child = LoopThread(name: "child") { loop in
                        loop.perform(afterDelay: .seconds(1)) { log("child \(loop.now)") }
                    }
                    child.join()
                    log("parent \(loop.now)")
                }
            }
            parent.join()
            #expect(simulation.now == seconds(2))
        }
        #expect(log.entries == ["child 2.000000000", "parent 2.000000000"])
    }

    @Test("threads that are still at work when the simulation ends are ended, and release everything")
    func endOfSimulation() {
        let released = Counter()
        let fired = Counter()
        let remotes = Log<RunLoop.Remote>()
        withSimulation { simulation in
            for number in 0..<5 {
                let thread = LoopThread(name: "thread \(number)") { loop in
                    let token = Token { released.add() }
                    Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in
                        token.touch()
                        fired.add()
                    }
                    loop.add(CustomSource(), forMode: .default)
                }
                remotes.append(thread.remote)
            }
            simulation.advance(by: .seconds(2))
        }
        #expect(released.value == 5)
        #expect(fired.value == 10)
        #expect(remotes.entries.allSatisfy { !$0.perform { _ in } })
    }

    @Test("a thread that was started and never had its turn is ended with the simulation too")
    func neverStarted() {
        let ran = Flag()
        let released = Flag()
        withSimulation { _ in
            let token = Token { released.set() }
            _ = LoopThread { loop in
                token.touch()
                loop.add(CustomSource(), forMode: .default)
                ran.set()
            }
        }
        #expect(ran.isSet)
        #expect(released.isSet)
    }

    @Test("a thread that sleeps a long time when the simulation ends does not hold it up by working on")
    func endWhileSpending() {
        let ended = Flag()
        withSimulation { simulation in
            let thread = LoopThread(name: "worker") { loop in
                loop.perform(afterDelay: .seconds(1)) {
                    simulation.spend(.seconds(100))
                    ended.set()
                }
            }
            simulation.advance(by: .seconds(2))
            #expect(!ended.isSet)
            withExtendedLifetime(thread) {}
        }
        #expect(ended.isSet)
    }

    @Test("runUntilIdle waits for the other threads as well")
    func idle() {
        let ticks = Counter()
        withSimulation { simulation in
            let thread = LoopThread(name: "worker") { _ in
                Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { timer in
                    if ticks.add() == 4 { timer.invalidate() }
                }
            }
            #expect(simulation.runUntilIdle() == .done)
            #expect(ticks.value == 4)
            #expect(simulation.now == seconds(4))
            thread.join()
        }
    }

    @Test("runUntilIdle is idle when another thread has something beyond the limit")
    func beyondLimit() {
        withSimulation { simulation in
            let thread = LoopThread(name: "worker") { _ in
                Timer.scheduledTimer(withTimeInterval: .seconds(3), repeats: true) { _ in }
            }
            let standing = simulation.runUntilIdle(limit: .seconds(10))
            guard case .idle(until: seconds(12), let next) = standing else {
                Issue.record("\(standing)")
                return
            }
            #expect(next.hasPrefix("timer (") && next.hasSuffix(") of worker"))
            #expect(simulation.now == seconds(9))
            thread.stop()
            #expect(simulation.runUntilIdle(limit: .seconds(10)) == .done)
        }
    }

    @Test("a timer's remote works between simulated threads, at once (R141)")
    func timerRemote() {
        let fires = Counter()
        let handle = Log<Timer.Remote>()
        withSimulation { simulation in
            let thread = LoopThread(name: "worker") { _ in
                let timer = Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in fires.add() }
                handle.append(timer.remote)
            }
            simulation.advance(to: seconds(2.5))
            handle.entries[0].invalidate()
            thread.join()
            #expect(fires.value == 2)
            #expect(simulation.now == seconds(2.5))
        }
    }

    @Test("threads that have ended are not looked at any more, however many there were")
    func endedThreads() {
        withSimulation { simulation in
            for _ in 0..<100 { LoopThread { _ in }.join() }
            #expect(simulation.timeline.stands.count == 1)
            let thread = LoopThread { $0.add(CustomSource(), forMode: .default) }
            #expect(simulation.timeline.stands.count == 2)
            thread.stop()
            thread.join()
            #expect(simulation.timeline.stands.count == 1)
        }
    }
}
