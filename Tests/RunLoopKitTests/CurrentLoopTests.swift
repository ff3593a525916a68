import Glibc
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("The loop of a thread", .timeLimit(.minutes(15)))
struct CurrentLoopTests {
    @Test("a thread has one loop, the same at every access (R1)")
    func sameLoop() {
        let isSame = onThread {
            let first = RunLoop.current
            return first === RunLoop.current && first.currentMode == nil
        }
        #expect(isSame)
    }

    @Test("asking whether a thread has a loop makes none")
    func ifAny() {
        let found = onThread {
            let before = RunLoop.currentIfAny == nil && RunLoop.currentIfAny == nil
            return before && RunLoop.current === RunLoop.currentIfAny
        }
        #expect(found)
        withSimulation { simulation in #expect(RunLoop.currentIfAny === simulation.loop) }
    }

    @Test("two threads have two loops (R1)")
    func twoLoops() {
        let isOther = onThread {
            let mine = Smuggled(RunLoop.current)
            return onThread { RunLoop.current !== mine.value }
        }
        #expect(isOther)
    }

    @Test("an empty loop does not run: every way to run it returns at once")
    func empty() {
        let results = onThread {
            let loop = RunLoop.current
            loop.run()
            loop.run(until: loop.now + .seconds(3600))
            return [
                loop.run(in: .default) == .finished,
                loop.run(mode: .default, before: .distantFuture) == false,
                loop.limitDate(forMode: .default) == nil,
            ]
        }
        #expect(results == [true, true, true])
    }

    @Test("a loop lives until its thread ends, and then releases everything")
    func threadEnds() {
        let released = Flag()
        let (loop, posted) = onThread {
            let token = Token { released.set() }
            let loop = RunLoop.current
            Timer.scheduledTimer(withTimeInterval: .seconds(3600), repeats: true) { _ in token.touch() }
            return (Weak(loop), loop.remote)
        }
        #expect(loop.isGone)
        #expect(released.isSet)
        #expect(posted.perform { _ in } == false)
        #expect(posted.stop() == false)
        #expect(posted.wakeUp() == false)
    }

    @Test("a scheduled timer is one of the current loop, in the default mode only (R96)")
    func scheduledTimer() {
        let results = onThread {
            let timer = Timer.scheduledTimer(withTimeInterval: .seconds(3600), repeats: false) { _ in }
            let loop = RunLoop.current
            let other = Timer(timeInterval: .seconds(3600), repeats: false) { _ in }
            return [
                loop.contains(timer, forMode: .default), !loop.contains(timer, forMode: .tracking),
                !loop.contains(timer, forMode: .common), !loop.contains(other, forMode: .default),
                loop.nextFireDate(forMode: .default) == timer.fireDate,
            ]
        }
        #expect(results == [true, true, true, true, true])
    }

    @Test("a timer with an interval counts from its creation, not from its being added (R96)")
    func countsFromCreation() {
        withSimulation { simulation in
            let timer = Timer(timeInterval: .seconds(2), repeats: false) { _ in }
            simulation.spend(.seconds(1))
            simulation.loop.add(timer, forMode: .default)
            #expect(timer.fireDate == RunLoop.Instant(nanoseconds: 2_000_000_000))
            #expect(simulation.loop.run(in: .default) == .finished)
            #expect(simulation.now == RunLoop.Instant(nanoseconds: 2_000_000_000))
        }
    }

    @Test("a timer of the current loop calls its target's method")
    func targetTimers() {
        final class Target {
            var calls: [String] = []
            func tick(_ timer: Timer) { calls.append(timer.userInfo as? String ?? "none") }
        }
        withSimulation { simulation in
            let target = Target()
            var short: Target? = Target()
            let gone = Weak(short)
            Timer.scheduledTimer(
                timeInterval: .seconds(1), target: target, selector: Target.tick, userInfo: "kept", repeats: false)
            let weak = Timer.scheduledTimer(
                timeInterval: .seconds(1), weakTarget: short!, selector: Target.tick, repeats: true)
            simulation.advance(by: .seconds(1))
            #expect(target.calls == ["kept"])
            #expect(short?.calls == ["none"])
            short = nil
            #expect(gone.isGone)
            simulation.advance(by: .seconds(1))
            #expect(!weak.isValid)
        }
    }

    @Test("the main loop's remote accepts requests before the main loop exists")
    func mainRemote() {
        // The main thread of a test run never runs its loop, so this has no effect here; see the fork tests.
        #expect(RunLoop.Remote.main.perform { _ in })
        #expect(!RunLoop.Remote.main.isWaiting)
    }
}
