import Glibc
import RunLoopKit
import TestSupport
import Testing

/// The operations of other threads on a single timer or source.
@Suite("Remotes of timers and sources", .timeLimit(.minutes(15)))
struct ItemRemoteTests {
    @Test("a timer invalidated by eight threads while it fires: no fire begins after invalidate has returned (R141)")
    func timerRace() {
        withLoopThread { thread in
            for round in 0..<300 {
                let fires = Counter()
                let firesAfterwards = Log<Int>()
                let handlers = Counter()
                let released = Flag()
                let handle = Log<Timer.Remote>()
                do {
                    let token = Token { released.set() }
                    thread.remote.perform { _ in
                        let timer = Timer.scheduledTimer(withTimeInterval: .microseconds(100), repeats: true) { _ in
                            token.touch()
                            fires.add()
                        }
                        timer.invalidationHandler = { handlers.add() }
                        handle.append(timer.remote)
                    }
                }
                guard eventually("the timer is there", { handle.entries.count == 1 }) else { return }
                let remote = handle.entries[0]
                if round % 2 == 0 {
                    guard eventually("the timer fires", { fires.value >= 1 + round % 5 }) else { return }
                }
                let threads = (0..<8).map { _ in
                    PlainThread {
                        remote.invalidate()
                        // A block comes between two fires, so that none is under way while it counts.
                        thread.remote.perform { _ in firesAfterwards.append(fires.value) }
                    }
                }
                for other in threads { other.join() }
                #expect(remote.isInvalidated)
                thread.remote.perform { loop in
                    loop.perform(afterDelay: .microseconds(500)) { firesAfterwards.append(fires.value) }
                }
                guard eventually("the fires are counted", { firesAfterwards.entries.count == 9 }) else { return }
                #expect(Set(firesAfterwards.entries).count == 1, "round \(round): \(firesAfterwards.entries)")
                #expect(handlers.value == 1)
                #expect(released.isSet)
            }
        }
    }

    @Test("a timer's remote wakes a loop that sleeps only for the timer, and the loop's run finishes (R141)")
    func timerWakes() {
        let released = Log<UInt>()
        let handle = Log<Timer.Remote>()
        let here = Log<UInt>()
        let thread = LoopThread { _ in
            here.append(threadNumber())
            let token = Token { released.append(threadNumber()) }
            let timer = Timer.scheduledTimer(withTimeInterval: .seconds(3600), repeats: true) { _ in token.touch() }
            handle.append(timer.remote)
        }
        guard eventually("the loop sleeps", { thread.remote.isWaiting }) else { return }
        handle.entries[0].invalidate()
        thread.join()
        #expect(released.entries == here.entries)
    }

    @Test("a timer's remote releases the target also while the loop runs in another mode")
    func timerOfOtherMode() {
        let released = Flag()
        let handle = Log<Timer.Remote>()
        withLoopThread { loop in
            let token = Token { released.set() }
            let timer = Timer(timeInterval: .seconds(1), repeats: true) { _ in token.touch() }
            loop.add(timer, forMode: .tracking)
            handle.append(timer.remote)
        } _: { thread in
            guard eventually("the loop sleeps", { thread.remote.isWaiting }) else { return }
            handle.entries[0].invalidate()
            _ = eventually("the target goes", { released.isSet })
        }
    }

    @Test("a timer that its remote has invalidated is invalid at once, and repeating that is harmless")
    func timerInvalid() {
        let results = onThread {
            let timer = Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in }
            let remote = timer.remote
            let before = (timer.isValid, remote.isInvalidated)
            onThread {
                remote.invalidate()
                remote.invalidate()
            }
            let after = (timer.isValid, remote.isInvalidated)
            let result = RunLoop.current.run(in: .default)
            return [before.0, !before.1, !after.0, after.1, result == .finished]
        }
        #expect(results == [true, true, true, true, true])
    }

    @Test("invalidating a timer on its own thread invalidates its remote")
    func timerTellsRemote() {
        let results = onThread {
            let timer = Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in }
            let remote = timer.remote
            timer.invalidate()
            return (remote.isInvalidated, timer.remote.isInvalidated)
        }
        #expect(results == (true, true))
    }

    @Test("the remote of a timer that is gone, or whose loop is, is harmless")
    func timerGone() {
        let (first, second) = onThread {
            let scheduled = Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in }
            let free = Timer(timeInterval: .seconds(1), repeats: true) { _ in }
            return (scheduled.remote, free.remote)
        }
        first.invalidate()
        second.invalidate()
        #expect(first.isInvalidated)
        #expect(second.isInvalidated)
    }

    @Test("a remote that was taken before its timer joined the loop works as well")
    func timerJoinsLater() {
        let released = Flag()
        let handle = Log<Timer.Remote>()
        let thread = LoopThread { loop in
            let token = Token { released.set() }
            let timer = Timer(timeInterval: .seconds(3600), repeats: true) { _ in token.touch() }
            handle.append(timer.remote)
            loop.add(timer, forMode: .default)
        }
        guard eventually("the loop sleeps", { thread.remote.isWaiting }) else { return }
        handle.entries[0].invalidate()
        thread.join()
        #expect(released.isSet)
    }

    @Test("a source signalled by eight threads is served after the last signal, at most once a signal (R66)")
    func sourceRace() {
        let handle = Log<CustomSource.Remote>()
        let (signals, served, seen) = (Counter(), Counter(), Counter())
        withLoopThread { loop in
            let source = CustomSource { _ in
                served.add()
                let now = signals.value
                if now > seen.value { seen.add(now - seen.value) }
            }
            loop.add(source, forMode: .default)
            handle.append(source.remote)
        } _: { _ in
            guard eventually("the source is there", { handle.entries.count == 1 }) else { return }
            let remote = handle.entries[0]
            let threads = (0..<8).map { _ in
                PlainThread {
                    for _ in 0..<500 {
                        signals.add()
                        remote.signal()
                    }
                }
            }
            for thread in threads { thread.join() }
            _ = eventually("the source has seen the last signal", { seen.value == 4000 })
        }
        #expect(served.value >= 1)
        #expect(served.value <= 4000)
    }

    @Test("each signal of its own has its own serving, also when the loop falls asleep between them")
    func sourcePingPong() {
        let handle = Log<CustomSource.Remote>()
        let served = Counter()
        withLoopThread { loop in
            let source = CustomSource { _ in served.add() }
            loop.add(source, forMode: .default)
            handle.append(source.remote)
        } _: { _ in
            guard eventually("the source is there", { handle.entries.count == 1 }) else { return }
            for round in 1...2000 {
                handle.entries[0].signal()
                guard eventually("signal \(round) is served", { served.value == round }) else { return }
            }
        }
        #expect(served.value == 2000)
    }

    @Test("a source's signal for a mode that does not run waits for it (R73)")
    func sourceOfOtherMode() {
        let results = onThread {
            let loop = RunLoop.current
            let served = Counter()
            let source = CustomSource { source in
                served.add()
                source.invalidate()
            }
            loop.add(source, forMode: .tracking)
            loop.add(CustomSource(), forMode: .default)
            let remote = source.remote
            onThread { remote.signal() }
            loop.run(in: .default, until: .distantPast)
            let before = served.value
            return (before, loop.run(in: .tracking), served.value)
        }
        #expect(results == (0, .finished, 1))
    }

    @Test("the signal of a source that is in no loop, or gone, is harmless")
    func sourceGone() {
        let (removed, gone) = onThread {
            let loop = RunLoop.current
            let source = CustomSource()
            loop.add(source, forMode: .default)
            let remote = source.remote
            loop.remove(source, forMode: .default)
            remote.signal()
            let isSignalled = source.isSignalled
            loop.add(source, forMode: .default)
            return (isSignalled, remote)
        }
        #expect(!removed)
        gone.signal()
    }
}
