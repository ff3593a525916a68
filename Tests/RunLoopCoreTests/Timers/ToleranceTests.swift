import RunLoopKit
import RunLoopLibevent
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopCore

@Suite("Tolerance")
struct ToleranceTests {
    @Test("a timer's tolerance is zero by default, and reads back (R148)")
    func readsBack() {
        let timer = Timer(fire: ms(10), interval: .zero, repeats: false) { _ in }
        #expect(timer.tolerance == .zero)
        timer.tolerance = .seconds(30)
        #expect(timer.tolerance == .seconds(30))
    }

    @Test("of a repeating timer's tolerance at most half of the interval counts, and nothing below zero (R149)")
    func capped() {
        let repeating = Timer(fire: ms(10), interval: .milliseconds(100), repeats: true) { _ in }
        repeating.tolerance = .milliseconds(20)
        #expect(repeating.tolerance == .milliseconds(20))
        repeating.tolerance = .milliseconds(80)
        #expect(repeating.tolerance == .milliseconds(50))
        repeating.tolerance = .milliseconds(-5)
        #expect(repeating.tolerance == .zero)
        let oneShot = Timer(fire: ms(10), interval: .zero, repeats: false) { _ in }
        oneShot.tolerance = .milliseconds(-5)
        #expect(oneShot.tolerance == .zero)
    }

    @Test("on virtual time no fire moves, and the grid never does (R148)")
    func virtualTimeIsExact() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let timer = loop.timer(7, every: 10) { _ in log(loop.now.word) }
            timer.tolerance = .milliseconds(5)
            loop.run(in: .default, until: ms(40))
            #expect(log.text == "7 17 27 37")
            #expect(timer.fireDate == ms(47))
        }
    }

    @Test("a timer comes with the first wake-up in its tolerance, and at its end by itself (R148)")
    func sharesWakeUps() {
        let driver = SteppedDriver()
        let (loop, log) = (RunLoop(driver: driver, world: libeventWorld), Log<String>())
        func add(_ name: String, at date: RunLoop.Instant, tolerance: Duration) {
            let timer = Timer(fire: date, interval: .zero, repeats: false) { _ in log("\(name) \(loop.now.word)") }
            timer.tolerance = tolerance
            loop.add(timer, forMode: .default)
        }
        add("exact", at: ms(30), tolerance: .zero)
        add("early", at: ms(10), tolerance: .milliseconds(15))
        add("with exact", at: ms(28), tolerance: .milliseconds(4))
        add("with early", at: ms(24), tolerance: .milliseconds(3))
        add("not yet", at: ms(31), tolerance: .milliseconds(100))
        loop.run(in: .default)
        #expect(log.text == "early 25 with early 25 exact 30 with exact 30 not yet 131")
        #expect(driver.wakeUps == [ms(25), ms(30), ms(131)])
        #expect(loop.statistics.savedWakeUps == 2)
        #expect(loop.statistics.lateness.maximum == .zero)
    }

    @Test("limitDate and nextFireDate are the date, without the tolerance")
    func limitDate() {
        let loop = RunLoop(driver: SteppedDriver(), world: libeventWorld)
        let timer = Timer(at: ms(30)) { _ in }
        timer.tolerance = .milliseconds(50)
        loop.add(timer, forMode: .default)
        loop.add(Timer(at: ms(40)) { _ in }, forMode: .default)
        #expect(loop.nextFireDate(forMode: .default) == ms(30))
        #expect(loop.limitDate(forMode: .default) == ms(30))
    }

    @Test("a repeating timer with a tolerance keeps to its grid")
    func gridStays() {
        let driver = SteppedDriver()
        let (loop, log) = (RunLoop(driver: driver, world: libeventWorld), Log<String>())
        let timer = Timer(fire: ms(10), interval: .milliseconds(10), repeats: true) { timer in
            log("\(timer.fireDate.word) at \(loop.now.word)")
            if timer.fireDate == ms(30) { timer.invalidate() }
        }
        timer.tolerance = .milliseconds(3)
        loop.add(timer, forMode: .default)
        loop.run(in: .default)
        #expect(log.text == "10 at 13 20 at 23 30 at 33")
    }
}

/// A driver that counts as real, whose time advances when a loop waits.
private final class SteppedDriver: Driver {
    private struct NoWaker: Waker {
        func wake() {}
        var now: RunLoop.Instant { ns(0) }
    }

    private(set) var now = ns(0)
    private(set) var wakeUps: [RunLoop.Instant] = []
    var waker: any Waker { NoWaker() }

    func wait(until deadline: RunLoop.Instant, into ready: ReadyQueue) -> WaitOutcome {
        guard deadline > now else { return .woke }
        now = deadline
        wakeUps.append(now)
        return .woke
    }

    func watch(_ descriptor: Int32, for events: DescriptorEvents, token: SourceToken) {}
    func watchWallClock(token: SourceToken) {}
    func unwatch(_ token: SourceToken) {}
}
