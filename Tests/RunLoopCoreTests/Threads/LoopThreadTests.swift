import Glibc
@_spi(Ports) import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("Loop threads", .timeLimit(.minutes(15)))
struct LoopThreadTests {
    @Test("a thread whose set-up adds nothing ends at once")
    func nothingToDo() {
        let ran = Flag()
        let thread = LoopThread { _ in ran.set() }
        thread.join()
        #expect(ran.isSet)
    }

    @Test("an end that is awaited covers the thread's local memory, which a library may need until the process exits")
    func localMemory() async throws {
        let released = Counter()
        try await withLoop { _ in LocalMemory.make(countedBy: released) }
        #expect(released.value == 1)
        let thread = LoopThread { _ in LocalMemory.make(countedBy: released) }
        await thread.ended()
        #expect(released.value == 2)
        let pool = LoopThreadPool(name: "local", maximumThreads: 1)
        let called = Flag()
        DeliveryQueue.pool(pool).asyncAfter(.zero) {
            LocalMemory.make(countedBy: released)
            called.set()
        }
        #expect(eventually("the pool has called") { called.isSet })
        pool.stop()
        await pool.ended()
        #expect(released.value == 3)
    }

    @Test("a stopped thread ends although another posts faster than it runs; every block it accepted has run")
    func flood() {
        let (accepted, ran) = (Counter(), Counter())
        let thread = LoopThread { $0.add(CustomSource(), forMode: .default) }
        let flooder = PlainThread {
            let post = {
                thread.remote.perform { _ in
                    usleep(100)
                    ran.add()
                }
            }
            while post() {
                accepted.add()
                while accepted.value - ran.value > 20 { sched_yield() }
            }
        }
        #expect(eventually("the thread is flooded") { accepted.value > 50 })
        thread.stop()
        thread.join()
        flooder.join()
        #expect(ran.value == accepted.value)
    }

    @Test("a thread without a set-up waits for work, does it in order, and ends when it is stopped")
    func worker() {
        withSimulation { simulation in
            let log = Log<String>()
            let worker = LoopThread(name: "worker")
            simulation.advance(by: .seconds(3600))
            for number in 1...3 {
                #expect(
                    worker.remote.perform { loop in
                        log("\(number) at \(loop.now)")
                        loop.remote.perform { _ in log("later \(number)") }
                    })
            }
            simulation.advance(by: .seconds(1))
            let times = (1...3).map { "\($0) at 3600.000000000" }
            #expect(log.entries == times + (1...3).map { "later \($0)" })
            worker.stop()
            worker.join()
            #expect(!worker.remote.perform { _ in log("never") })
        }
    }

    @Test("a thread ends when nothing is left in its loop")
    func nothingLeft() {
        let ticks = Counter()
        let thread = LoopThread { _ in
            Timer.scheduledTimer(withTimeInterval: .milliseconds(1), repeats: true) { timer in
                if ticks.add() == 3 { timer.invalidate() }
            }
        }
        thread.join()
        #expect(ticks.value == 3)
    }

    @Test("the set-up is called on the new thread, with that thread's loop")
    func setUp() {
        let same = Flag()
        let there = Counter()
        let thread = LoopThread(name: "a name beyond fifteen bytes") { loop in
            if loop === RunLoop.current { same.set() }
            there.add(Int(bitPattern: threadNumber()))
        }
        thread.join()
        #expect(thread.name == "a name beyond fifteen bytes")
        #expect(same.isSet)
        #expect(there.value != Int(bitPattern: threadNumber()))
    }

    @Test("a thread ends on stop")
    func stop() {
        let thread = LoopThread { $0.add(CustomSource(), forMode: .default) }
        thread.stop()
        thread.join()
        #expect(thread.remote.perform { _ in } == false)
    }

    @Test("a thread ends on stop while it sleeps")
    func stopAsleep() {
        let thread = LoopThread { $0.add(CustomSource(), forMode: .default) }
        guard eventually("the thread falls asleep", { thread.remote.isWaiting }) else { return }
        thread.stop()
        thread.join()
    }

    @Test("a thread ends on stop also out of nested runs, in whatever mode and by whatever call", arguments: 0..<4)
    func stopNested(call: Int) {
        let depth = Counter()
        let thread = LoopThread { loop in
            func runNested(_ level: Int) {
                depth.add()
                if level < 3 { loop.perform(inModes: ["inner", .default]) { runNested(level + 1) } }
                switch call {
                case 0: loop.run(in: "inner")
                case 1: loop.run()
                case 2: loop.run(until: .distantFuture)
                default: while loop.run(mode: "inner", before: .distantFuture) {}
                }
            }
            loop.add(CustomSource(), forMode: ["inner", .default])
            loop.perform { runNested(1) }
        }
        guard eventually("three runs are nested", { depth.value == 3 && thread.remote.isWaiting }) else { return }
        thread.stop()
        thread.join()
    }

    @Test("stop ends a run that the set-up makes by itself")
    func stopInSetUp() {
        let thread = LoopThread { loop in
            loop.add(CustomSource(), forMode: .tracking)
            loop.run(in: .tracking)
        }
        guard eventually("the set-up runs the loop", { thread.remote.isWaiting }) else { return }
        thread.stop()
        thread.join()
    }

    @Test("no run begins after stop, regardless of the requests of the handler under way")
    func noRunAfterStop() {
        let results = Log<RunLoop.RunResult>()
        let (isInside, isStopped) = (Flag(), Flag())
        let thread = LoopThread { loop in
            loop.add(CustomSource(), forMode: .common)
            loop.perform {
                isInside.set()
                while !isStopped.isSet { sched_yield() }
                for _ in 0..<3 { results.append(loop.run(in: .default)) }
                loop.run()
                loop.run(until: .distantFuture)
            }
        }
        guard eventually("the block runs", { isInside.isSet }) else { return }
        thread.stop()
        isStopped.set()
        thread.join()
        #expect(results.entries.count == 3)
    }

    @Test("stop before the thread has started ends it all the same")
    func stopBeforeStart() {
        for _ in 0..<200 {
            let thread = LoopThread { loop in
                loop.add(CustomSource(), forMode: .default)
            }
            thread.stop()
            thread.join()
        }
    }

    @Test("stop from the thread itself ends it")
    func stopFromWithin() {
        let fired = Counter()
        let box = Locked<LoopThread?>(nil)
        let isReady = Flag()
        let thread = LoopThread { _ in
            Timer.scheduledTimer(withTimeInterval: .milliseconds(1), repeats: true) { _ in
                guard isReady.isSet else { return }
                fired.add()
                box.withLock { $0 }?.stop()
            }
        }
        box.withLock { $0 = thread }
        isReady.set()
        thread.join()
        #expect(fired.value == 1)
        box.withLock { $0 = nil }
    }

    @Test("stop may be repeated, also after the end")
    func stopTwice() {
        let thread = LoopThread { $0.add(CustomSource(), forMode: .default) }
        thread.stop()
        thread.stop()
        thread.join()
        thread.stop()
    }

    @Test("join may be repeated, and by several threads at once")
    func joinTwice() {
        let ended = Flag()
        let thread = LoopThread { loop in
            Timer.scheduledTimer(withTimeInterval: .milliseconds(5), repeats: false) { _ in ended.set() }
        }
        let others = (0..<4).map { _ in PlainThread { thread.join() } }
        thread.join()
        thread.join()
        #expect(ended.isSet)
        for other in others { other.join() }
    }

    @Test("after join everything has been released, on the thread, in the order of ownership")
    func releaseOrder() {
        final class Owner {
            let onRelease: () -> Void
            init(_ onRelease: @escaping () -> Void) { self.onRelease = onRelease }
            deinit { onRelease() }
        }
        final class Proxy {
            let owner: Owner
            let ticks: Counter
            let onRelease: () -> Void
            init(_ owner: Owner, _ ticks: Counter, _ onRelease: @escaping () -> Void) {
                (self.owner, self.ticks, self.onRelease) = (owner, ticks, onRelease)
            }
            deinit { onRelease() }
            func tick(_ timer: Timer) {
                if ticks.add() == 3 { timer.invalidate() }
            }
        }
        let log = Log<String>()
        let threads = Log<UInt>()
        let ticks = Counter()
        let weak = Log<Weak<AnyObject>>()
        let thread = LoopThread { loop in
            threads.append(threadNumber())
            let owner = Owner {
                log("owner")
                threads.append(threadNumber())
            }
            let proxy = Proxy(owner, ticks) {
                log("proxy")
                threads.append(threadNumber())
            }
            let timer = Timer.scheduledTimer(
                timeInterval: .milliseconds(1), target: proxy, selector: Proxy.tick, repeats: true)
            for object in [owner, proxy, timer, loop] as [AnyObject] { weak.append(Weak(object)) }
        }
        thread.join()
        #expect(ticks.value == 3)
        #expect(log.entries == ["proxy", "owner"])
        #expect(weak.entries.map(\.isGone) == [true, true, true, true])
        #expect(Set(threads.entries).count == 1)
    }

    @Test("items still scheduled when a thread is stopped are released on it, before join returns")
    func releaseOnStop() throws {
        let released = Log<UInt>()
        let here = Log<UInt>()
        let pipe = DescriptorPair()
        defer { withExtendedLifetime(pipe) {} }
        let reader = pipe.reader
        let thread = LoopThread { loop in
            here.append(threadNumber())
            let tokens = (0..<6).map { _ in Token { released.append(threadNumber()) } }
            Timer.scheduledTimer(withTimeInterval: .seconds(3600), repeats: true) { _ in tokens[0].touch() }
            loop.add(CustomSource { _ in tokens[1].touch() }, forMode: .common)
            loop.add(Observer(activities: .exit) { _, _ in tokens[2].touch() }, forMode: .tracking)
            loop.perform(inModes: .tracking) { tokens[3].touch() }
            loop.perform(afterDelay: .seconds(3600)) { tokens[4].touch() }
            let source = DescriptorSource(fileDescriptor: reader, events: .readable) { _, _ in tokens[5].touch() }
            try? loop.add(source, forMode: .default)
        }
        guard eventually("the thread falls asleep", { thread.remote.isWaiting }) else { return }
        thread.stop()
        thread.join()
        #expect(released.entries.count == 6)
        #expect(Set(released.entries) == Set(here.entries))
    }

    @Test("the set-up itself is released before join returns")
    func releaseOfSetUp() {
        let released = Flag()
        do {
            let token = Token { released.set() }
            let thread = LoopThread { _ in token.touch() }
            thread.join()
        }
        #expect(released.isSet)
    }

    @Test("a dropped thread continues, and ends when nothing is left")
    func dropped() {
        let ticks = Counter()
        let ended = Flag()
        let weak: Weak<LoopThread>
        do {
            let thread = LoopThread { loop in
                let token = Token { ended.set() }
                Timer.scheduledTimer(withTimeInterval: .milliseconds(1), repeats: true) { timer in
                    token.touch()
                    if ticks.add() == 10 { timer.invalidate() }
                }
            }
            weak = Weak(thread)
        }
        #expect(weak.isGone)
        _ = eventually("the dropped thread ends", { ended.isSet })
        #expect(ticks.value == 10)
    }

    @Test("the remote of a dropped thread still stops the thread's loop")
    func droppedRemote() {
        let ended = Flag()
        let remote: RunLoop.Remote
        do {
            let thread = LoopThread { loop in
                let token = Token { ended.set() }
                loop.add(CustomSource { _ in token.touch() }, forMode: .default)
            }
            remote = thread.remote
        }
        #expect(remote.stop())
        _ = eventually("the dropped thread ends", { ended.isSet })
    }

    @Test("withLoopThread keeps the thread for its body, also when nothing is scheduled, and then ends it")
    func scoped() {
        let performed = Counter()
        let released = Flag()
        let (name, remote) = withLoopThread(name: "scoped") { thread in
            let token = Token { released.set() }
            for _ in 0..<10 {
                thread.remote.perform { _ in
                    token.touch()
                    performed.add()
                }
            }
            _ = eventually("the blocks run", { performed.value == 10 })
            return (thread.name, thread.remote)
        }
        #expect(name == "scoped")
        #expect(performed.value == 10)
        #expect(released.isSet)
        #expect(remote.perform { _ in } == false)
    }

    @Test("withLoopThread ends its thread also when the body throws")
    func scopedThrow() {
        struct Failure: Error {}
        let released = Flag()
        let token = Locked<Token?>(Token { released.set() })
        #expect(throws: Failure.self) {
            try withLoopThread { loop in
                let kept = token.withLock { token in
                    defer { token = nil }
                    return token
                }
                loop.add(CustomSource { _ in kept?.touch() }, forMode: .tracking)
            } _: { _ in
                throw Failure()
            }
        }
        #expect(released.isSet)
    }

    @Test("many threads run at once, each with its own loop")
    func manyThreads() {
        let ticks = Counter()
        let threads = (0..<50).map { _ in
            LoopThread { _ in
                var left = 20
                Timer.scheduledTimer(withTimeInterval: .microseconds(200), repeats: true) { timer in
                    ticks.add()
                    left -= 1
                    if left == 0 { timer.invalidate() }
                }
            }
        }
        for thread in threads { thread.join() }
        #expect(ticks.value == 1000)
    }
}
