import Glibc
@_spi(Ports) import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

/// Loop-bound values, which may travel anywhere, and are used and released on their loop's thread.
@Suite("Loop-bound values", .timeLimit(.minutes(15)))
struct LoopBoundTests {
    @Test("a timer passes through another thread, and is stopped on its own")
    func throughAnotherThread() {
        withSimulation { simulation in
            var fires = 0
            let timer = LoopBound(
                Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in fires += 1 },
                loop: simulation.loop)
            let thread = LoopThread { loop in
                loop.perform(afterDelay: .seconds(2.5)) {
                    timer.remote.perform { _ in timer.value.invalidate() }
                }
            }
            simulation.advance(by: .seconds(10))
            thread.join()
            #expect(fires == 2)
            #expect(!timer.value.isValid)
        }
    }

    @Test("a value is changed in place, also one that is nil")
    func change() {
        onThread {
            let names = LoopBound<String?>(nil, loop: .current)
            #expect(names.value == nil)
            names.value = "a"
            names.value?.append("b")
            #expect(names.value == "ab")
        }
    }

    @Test("on the loop's thread the value is released with the last reference")
    func releasedHere() {
        onThread {
            let isGone = Flag()
            do { _ = LoopBound(Token { isGone.set() }, loop: .current) }
            #expect(isGone.isSet)
        }
    }

    @Test("when the last reference is released on another thread, the value is released on the loop's thread")
    func releasedElsewhere() {
        let number = Log<UInt>()
        let thread = LoopThread { loop in
            let bound = LoopBound(Token { number.append(threadNumber()) }, loop: loop)
            // Releases the value where it is called.
            let other = PlainThread { _ = bound.remote }
            loop.perform { other.join() }
            loop.add(CustomSource(), forMode: .default)
        }
        let own = try? thread.remote.performAndWait { _ in threadNumber() }
        #expect(eventually("the value goes") { !number.entries.isEmpty })
        #expect(number.entries == [own])
        thread.stop()
        thread.join()
    }

    @Test("when the loop ends, the value is released on its thread, regardless of remaining references")
    func loopEnds() {
        let numbers = Log<UInt>()
        let kept = Locked<LoopBound<Token>?>(nil)
        let thread = LoopThread { loop in
            kept.withLock { $0 = LoopBound(Token { numbers.append(threadNumber()) }, loop: loop) }
            numbers.append(threadNumber())
        }
        thread.join()
        #expect(numbers.entries.count == 2)
        #expect(Set(numbers.entries).count == 1)
        kept.withLock { $0 = nil }
        #expect(numbers.entries.count == 2)
    }

    @Test("a value releases another value in its deinit")
    func nested() {
        let isGone = Flag()
        let thread = LoopThread { loop in
            let inner = LoopBound(Token { isGone.set() }, loop: loop)
            let outer = LoopBound(Token { inner.value.touch() }, loop: loop)
            loop.perform { outer.value.touch() }
        }
        thread.join()
        #expect(isGone.isSet)
    }

    @Test("the value on another thread traps")
    func elsewhere() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            func useElsewhere() {
                let bound = LoopBound(1, loop: .current)
                onThread { _ = bound.value }
            }
            useElsewhere()
        }
        let isSaid = says("a value that is bound to a loop is used on the loop's own thread only", result)
        let isNamed = says("Int bound to a loop (RunLoopCoreTests/LoopBoundTests.swift:", result)
        #expect(isSaid && isNamed)
    }

    @Test("the value when its loop has ended traps")
    func afterTheEnd() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            func useAfterTheEnd() {
                let loop = RunLoop.current
                let bound = LoopBound(1, loop: loop)
                loop.tearDown()
                _ = bound.value
            }
            useAfterTheEnd()
        }
        let isSaid = says("was used after its loop had ended, which released the values", result)
        let isNamed = says("Int bound to a loop (RunLoopCoreTests/LoopBoundTests.swift:", result)
        #expect(isSaid && isNamed)
    }
}
