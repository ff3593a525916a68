import RunLoopKit
import TestSupport
import Testing

@testable import RunLoopCore

@Suite("The frame clock")
struct FrameClockTests {
    private static let rates = [24, 30, 60, 90, 120, 144, 240]

    @Test("frame k is at ⌊k s / rate⌋, exactly, also after a billion frames", arguments: rates)
    func exactGrid(rate: Int) {
        let clock = FrameClock(framesPerSecond: rate)
        for base in [0, 1_000_000_000, 1_000_000_007, -1_000_000_000] as [Int64] {
            for number in base...base + 2 * Int64(rate) {
                let (seconds, rest) = number.quotientAndRemainder(dividingBy: Int64(rate))
                let whole = seconds * 1_000_000_000
                // Division rounds towards zero, the clock downwards.
                let exact = rest * 1_000_000_000
                let part = exact >= 0 ? exact / Int64(rate) : -((-exact + Int64(rate) - 1) / Int64(rate))
                #expect(clock.date(of: number) == ns(whole + part))
            }
        }
    }

    @Test("the frame at a time is the latest that is not later", arguments: rates)
    func frameAtDate(rate: Int) {
        let clock = FrameClock(framesPerSecond: rate, start: ns(123_456_789))
        var generator = SeededGenerator(seed: UInt64(rate))
        let seldom = (0..<500).map { _ in Int64.random(in: -100_000_000_000...100_000_000_000, using: &generator) }
        for number in seldom + Array(-300...300) {
            let date = clock.date(of: number)
            #expect(clock.frame(at: date) == number)
            #expect(clock.frame(at: ns(date.nanoseconds - 1)) == number - 1)
            #expect(clock.frame(at: ns(date.nanoseconds + 1)) == number)
            #expect(clock.frame(after: date) == number + 1)
            #expect(clock.frame(after: ns(date.nanoseconds - 1)) == number)
        }
    }

    @Test("the grid extends back before the start")
    func beforeStart() {
        let clock = FrameClock(framesPerSecond: 30, start: ms(1000))
        #expect(clock.date(of: 0) == ms(1000))
        #expect(clock.date(of: -30) == ms(0))
        #expect(clock.date(of: -1) == ns(966_666_666))
        #expect(clock.frame(at: ns(966_666_666)) == -1)
        #expect(clock.frame(at: ns(966_666_665)) == -2)
        #expect(clock.frame(at: ms(0)) == -30)
    }

    @Test("dates that no instant can hold are distantFuture and distantPast")
    func saturated() {
        let clock = FrameClock(start: ms(5))
        #expect(clock.date(of: .max) == .distantFuture)
        #expect(clock.date(of: .min) == .distantPast)
        #expect(clock.date(of: clock.frame(at: .distantFuture)) <= .distantFuture)
        #expect(clock.date(of: clock.frame(after: .distantFuture)) == .distantFuture)
        let fastest = FrameClock(framesPerSecond: 240, per: .nanoseconds(240), start: .distantPast)
        #expect(fastest.frame(at: .distantFuture) == .max)
        #expect(fastest.frame(after: .distantFuture) == .max)
    }

    @Test("the period is exact to the attosecond")
    func period() {
        #expect(FrameClock().framePeriod == Duration(secondsComponent: 0, attosecondsComponent: 16_666_666_666_666_666))
        #expect(FrameClock(framesPerSecond: 240).framePeriod == .nanoseconds(1_000_000_000) / 240)
        #expect(FrameClock(framesPerSecond: 25).framePeriod == .milliseconds(40))
    }

    @Test("at another scale the frames are nearer together, and the rate is called the same")
    func scaled() {
        let clock = FrameClock(framesPerSecond: 60, per: .milliseconds(60))
        #expect(clock.framesPerSecond == 60)
        #expect(clock.framePeriod == .milliseconds(1))
        #expect(clock.date(of: 1_000_000_000) == ms(1_000_000_000))
        #expect(clock.frame(at: ms(7)) == 7)
    }

    @Test("equal clocks are equal")
    func equality() {
        #expect(FrameClock() == FrameClock(framesPerSecond: 60, start: ms(0)))
        #expect(FrameClock() != FrameClock(framesPerSecond: 30))
        #expect(FrameClock() != FrameClock(framesPerSecond: 60, per: .seconds(2)))
        #expect(Set([FrameClock(), FrameClock(), FrameClock(start: ms(1))]).count == 2)
    }

    @Test("fewer than 24 and more than 240 frames per second trap")
    func limits() async {
        #expect(FrameClock(framesPerSecond: 24).framesPerSecond == 24)
        #expect(FrameClock(framesPerSecond: 240).framesPerSecond == 240)
        await #expect(processExitsWith: .failure) { _ = FrameClock(framesPerSecond: 23) }
        await #expect(processExitsWith: .failure) { _ = FrameClock(framesPerSecond: 241) }
    }
}
