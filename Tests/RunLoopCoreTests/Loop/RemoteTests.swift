import Glibc
import RunLoopKit
import TestSupport
import Testing

@Suite("Remotes", .timeLimit(.minutes(15)))
struct RemoteTests {
    @Test("blocks from one thread run in the order in which they were posted (R75)")
    func order() {
        struct Post: Sendable, Equatable {
            let sender: Int
            let number: Int
        }
        let log = Log<Post>()
        withLoopThread { thread in
            let senders = (0..<8).map { sender in
                PlainThread {
                    for number in 0..<1000 {
                        thread.remote.perform { _ in log.append(Post(sender: sender, number: number)) }
                    }
                }
            }
            for sender in senders { sender.join() }
            _ = eventually("all blocks run", { log.entries.count == 8000 })
        }
        for sender in 0..<8 {
            #expect(log.entries.filter { $0.sender == sender }.map(\.number) == Array(0..<1000))
        }
    }

    @Test("a block runs on the loop's thread, with its loop")
    func thread() {
        let (here, there) = (Log<UInt>(), Log<UInt>())
        let isCurrent = Flag()
        withLoopThread { thread in
            here.append(threadNumber())
            thread.remote.perform { loop in
                there.append(threadNumber())
                if loop === RunLoop.current { isCurrent.set() }
            }
            _ = eventually("the block runs", { isCurrent.isSet })
        }
        #expect(here.entries != there.entries)
    }

    @Test("a block for another mode waits until that mode runs, and keeps its place (R75)")
    func modes() {
        let log = Log<String>()
        onThread {
            let loop = RunLoop.current
            let remote = loop.remote
            onThread {
                remote.perform(inModes: .tracking) { _ in log("tracking") }
                remote.perform(inModes: [.tracking, .default]) { _ in log("either") }
                remote.perform(inModes: .common) { _ in log("common") }
                remote.perform(inModes: .tracking) { _ in log("tracking again") }
                remote.perform(inModes: []) { _ in log("never") }
            }
            loop.run(in: .default)
            log("|")
            loop.run(in: .tracking)
        }
        #expect(log.entries == ["either", "common", "|", "tracking", "tracking again"])
    }

    @Test("a block that was posted before the loop ran is run by its first pass")
    func beforeRun() {
        let result = onThread {
            let loop = RunLoop.current
            let performed = Counter()
            loop.remote.perform { _ in performed.add() }
            return (loop.run(in: .default), performed.value)
        }
        #expect(result == (.finished, 1))
    }

    @Test("perform on a loop that has ended returns false and releases the block")
    func ended() {
        let thread = LoopThread { _ in }
        thread.join()
        let released = Flag()
        do {
            let token = Token { released.set() }
            #expect(thread.remote.perform { _ in token.touch() } == false)
        }
        #expect(released.isSet)
        #expect(thread.remote.stop() == false)
        #expect(thread.remote.wakeUp() == false)
        #expect(!thread.remote.isWaiting)
    }

    @Test("blocks that a loop had not run when it ended are released, not run (R81)")
    func undelivered() {
        let released = Counter()
        let ran = Flag()
        let thread = LoopThread { $0.add(CustomSource(), forMode: .default) }
        for modes in [RunLoop.Modes("nobody runs it"), .tracking] {
            let token = Token { released.add() }
            thread.remote.perform(inModes: modes) { _ in
                token.touch()
                ran.set()
            }
        }
        thread.stop()
        thread.join()
        #expect(released.value == 2)
        #expect(!ran.isSet)
    }

    @Test("a stop that comes before the run ends it with its first pass, and only that run")
    func stickyStop() {
        let results = onThread {
            let loop = RunLoop.current
            loop.add(CustomSource(), forMode: .default)
            loop.remote.stop()
            loop.remote.stop()
            let first = loop.run(in: .default, until: loop.now + .seconds(3600))
            let second = loop.run(in: .default, until: loop.now + .milliseconds(1))
            return [first, second]
        }
        #expect(results == [.stopped, .timedOut])
    }

    @Test("a stop of the loop itself while it does not run is forgotten (R38)")
    func localStop() {
        let result = onThread {
            let loop = RunLoop.current
            loop.add(CustomSource(), forMode: .default)
            loop.stop()
            return loop.run(in: .default, until: loop.now + .milliseconds(1))
        }
        #expect(result == .timedOut)
    }

    @Test("a block that was posted before a stop still runs (R84)")
    func blockBeforeStop() {
        let results = onThread {
            let loop = RunLoop.current
            loop.add(CustomSource(), forMode: .default)
            var count = 0
            for _ in 0..<100 {
                let ran = Flag()
                let remote = loop.remote
                let other = PlainThread {
                    remote.perform { _ in ran.set() }
                    remote.stop()
                }
                let result = loop.run(in: .default)
                other.join()
                if result == .stopped && ran.isSet { count += 1 }
            }
            return count
        }
        #expect(results == 100)
    }

    @Test("blocks that were posted before a stop run, also when both came before the run (R84)")
    func blockBeforeEarlyStop() {
        let results = onThread {
            let loop = RunLoop.current
            loop.add(CustomSource(), forMode: .default)
            let ran = Counter()
            loop.remote.perform { _ in ran.add() }
            loop.remote.stop()
            return (loop.run(in: .default), ran.value, loop.statistics.passes)
        }
        #expect(results == (.stopped, 1, 1))
    }

    @Test("a block that a thread's last handler posts to its own loop still runs: no accepted post is lost")
    func postFromLastHandler() {
        let (accepted, performed) = (Flag(), Flag())
        let thread = LoopThread { loop in
            Timer.scheduledTimer(withTimeInterval: .milliseconds(1), repeats: false) { _ in
                if loop.remote.perform({ _ in performed.set() }) { accepted.set() }
            }
        }
        thread.join()
        #expect(accepted.isSet)
        #expect(performed.isSet)
    }

    @Test("a stop ends the innermost run only (R82)")
    func innermost() {
        let log = Log<String>()
        withLoopThread { thread in
            thread.remote.perform { loop in
                log("inner \(loop.run(in: .default))")
            }
            guard eventually("the inner run sleeps", { thread.remote.isWaiting }) else { return }
            // The outer run may have slept before it took the block; only a run within a block has a stop to report.
            let isInside = Flag()
            thread.remote.perform { _ in isInside.set() }
            guard eventually("the inner run answers", { isInside.isSet }) else { return }
            thread.remote.stop()
            guard eventually("the inner run ends", { log.entries.count == 1 }) else { return }
            let isAlive = Flag()
            thread.remote.perform { _ in isAlive.set() }
            _ = eventually("the outer run goes on", { isAlive.isSet })
        }
        #expect(log.entries == ["inner stopped"])
    }

    @Test("run() and run(until:) continue after a stop (R46)")
    func runGoesOn() {
        let fired = onThread {
            let loop = RunLoop.current
            let fired = Counter()
            loop.remote.stop()
            Timer.scheduledTimer(withTimeInterval: .milliseconds(1), repeats: true) { timer in
                loop.remote.stop()
                if fired.add() == 3 { timer.invalidate() }
            }
            loop.run()
            return fired.value
        }
        #expect(fired == 3)
    }

    @Test("a wake-up makes one more pass and calls nothing early (R85)")
    func wakeUp() {
        let passes = Counter()
        let fired = Flag()
        withLoopThread { loop in
            loop.add(Observer(activities: .afterWaiting) { _, _ in passes.add() }, forMode: .default)
            Timer.scheduledTimer(withTimeInterval: .seconds(3600), repeats: false) { _ in fired.set() }
        } _: { thread in
            for expected in 1...5 {
                guard eventually("the loop sleeps", { thread.remote.isWaiting }) else { return }
                #expect(thread.remote.wakeUp())
                guard eventually("the loop passes", { passes.value >= expected }) else { return }
            }
            #expect(!fired.isSet)
        }
    }

    @Test("isWaiting is true while a loop sleeps, and false while a callback is under way (R5)")
    func isWaiting() {
        let goOn = Flag()
        let isInside = Flag()
        withLoopThread { thread in
            guard eventually("the loop sleeps", { thread.remote.isWaiting }) else { return }
            thread.remote.perform { loop in
                isInside.set()
                while !goOn.isSet { sched_yield() }
            }
            guard eventually("the block runs", { isInside.isSet }) else { return }
            #expect(!thread.remote.isWaiting)
            goOn.set()
            _ = eventually("the loop sleeps again", { thread.remote.isWaiting })
        }
    }

    @Test("a post from a deinit that a post's release triggers is not lost")
    func postFromDeinit() {
        let performed = Flag()
        withLoopThread { thread in
            let remote = thread.remote
            do {
                let token = Token { remote.perform { _ in performed.set() } }
                thread.remote.perform { _ in token.touch() }
            }
            _ = eventually("the second block runs", { performed.isSet })
        }
        #expect(performed.isSet)
    }

    @Test("a post from a deinit while the loop is torn down is refused, and nothing hangs")
    func postWhileTornDown() {
        let answers = Log<Bool>()
        let thread = LoopThread { loop in
            let remote = loop.remote
            let token = Token { answers.append(remote.perform { _ in }) }
            loop.add(CustomSource { _ in token.touch() }, forMode: .default)
            loop.perform(inModes: .tracking) { token.touch() }
        }
        let remote = thread.remote
        do {
            let token = Token { answers.append(remote.perform { _ in }) }
            thread.remote.perform(inModes: .tracking) { _ in token.touch() }
        }
        thread.stop()
        thread.join()
        #expect(answers.entries == [false, false])
    }
}
