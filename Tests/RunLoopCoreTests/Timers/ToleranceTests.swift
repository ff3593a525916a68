import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@testable import RunLoopCore

@Suite("Tolerance")
struct ToleranceTests {
    @Test("a timer's tolerance is zero unless set, and reads back (R148)")
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
            let (loop, log) = (simulation.loop, Log())
            let timer = loop.timer(7, every: 10) { _ in log(loop.now.word) }
            timer.tolerance = .milliseconds(5)
            loop.run(in: .default, until: ms(40))
            #expect(log.text == "7 17 27 37")
            #expect(timer.fireDate == ms(47))
        }
    }

    @Test("timers with slack meet where the most zeros are within it")
    func coalescing() {
        #expect(ns(1000).coalesced(within: .nanoseconds(100)) == ns(1024))
        #expect(ns(1024).coalesced(within: .nanoseconds(100)) == ns(1024))
        #expect(ns(1025).coalesced(within: .nanoseconds(64)) == ns(1088))
        #expect(ns(1025).coalesced(within: .nanoseconds(63)) == ns(1088))
        #expect(ns(1025).coalesced(within: .nanoseconds(62)) == ns(1056))
        #expect(ns(1025).coalesced(within: .nanoseconds(1023)) == ns(2048))
        #expect(ns(1001).coalesced(within: .nanoseconds(1)) == ns(1002))
        #expect(ns(1001).coalesced(within: .zero) == ns(1001))
        #expect(RunLoop.Instant.distantFuture.coalesced(within: .seconds(1)) == .distantFuture)
    }

    @Test("a coalesced date is never before the date and never beyond its slack (R148)")
    func coalescingStaysInside() {
        let seed: UInt64 = 148
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<10_000 {
            let date = ns(Int64.random(in: 0...(1 << 50), using: &generator))
            let slack = Duration.nanoseconds(Int64.random(in: 0...(1 << 40), using: &generator))
            let moved = date.coalesced(within: slack)
            #expect(moved >= date && moved <= date + slack, "seed \(seed), \(date), \(slack)")
        }
    }
}
