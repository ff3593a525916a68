import RunLoopKit
import RunLoopSimulation
import Testing

@testable import RunLoopCore

@Suite("The rate of a display link")
struct FrameRateTests {
    private func divisor(_ rate: Int, of maximum: Int = 60) -> Int64 {
        FrameRateRange(minimum: Double(rate), maximum: Double(rate)).divisor(for: maximum)
    }

    private func divisor(_ minimum: Double, _ maximum: Double, _ preferred: Double = 0, of rate: Int = 60) -> Int64 {
        FrameRateRange(minimum: minimum, maximum: maximum, preferred: preferred).divisor(for: rate)
    }

    @Test("the nearest factor of the maximum is taken, of two that are equally near the higher (R200)")
    func nearestFactor() {
        let expected = [
            0: 1, 60: 1, 61: 1, 1000: 1, 50: 1, 46: 1, 45: 1, 44: 2, 40: 2, 35: 2, 30: 2, 26: 2, 25: 2, 24: 3, 22: 3,
            20: 3, 15: 4, 12: 5, 10: 6, 7: 9, 2: 30, 1: 60,
        ]
        for (rate, number) in expected { #expect(divisor(rate) == number, "rate \(rate)") }
    }

    @Test("no other factor is nearer, at any maximum and any rate (R200)", arguments: 24...240)
    func nearestOfAll(maximum: Int) {
        for rate in 1...250 {
            let chosen = divisor(rate, of: maximum)
            // |maximum / d − rate|, compared without fractions.
            func isNearer(_ left: Int, _ right: Int) -> Bool {
                abs(maximum - rate * left) * right < abs(maximum - rate * right) * left
            }
            let best = (1...maximum + 1).reduce(1) { isNearer($1, $0) ? $1 : $0 }
            #expect(chosen == best, "rate \(rate) of \(maximum)")
        }
    }

    @Test("of the factors in the range the highest, or the nearest to the preferred rate (R202)")
    func range() {
        #expect(FrameRateRange.default.divisor(for: 60) == 1)
        #expect(divisor(0, 30) == 2)
        #expect(divisor(0, 29) == 3)
        #expect(divisor(10, 25) == 3)
        #expect(divisor(10, 25, 12) == 5)
        #expect(divisor(10, 25, 10) == 6)
        #expect(divisor(24, 48) == 2)
        #expect(divisor(30, 30) == 2)
        #expect(divisor(30, 120) == 1)
        #expect(divisor(30, .infinity) == 1)
        #expect(divisor(30, .infinity, 31) == 2)
        #expect(divisor(60 / 7, 60 / 7) == 7)
        #expect(divisor(80, 120, 100) == 1)
        #expect(divisor(8, 120, 95, of: 120) == 1)
        #expect(divisor(8, 100, 95, of: 120) == 2)
    }

    @Test("a factor in the range is better than a nearer one outside (R202)")
    func insideBeforeNearer() {
        // 30 is nearer to 35 than 60 is, but not in the range.
        #expect(divisor(34, 60, 35) == 1)
        #expect(divisor(20, 50, 50) == 2)
    }

    @Test("without a factor in the range, the nearest to the preferred rate, or to the range (R202)")
    func noneInside() {
        #expect(divisor(41, 44) == 2)
        #expect(divisor(46, 49) == 1)
        #expect(divisor(41, 49) == 1)
        #expect(divisor(40, 50, 41) == 2)
        #expect(divisor(40, 50, 49) == 1)
        #expect(divisor(100, 200) == 1)
    }

    @Test("rates near zero are rates", arguments: [1e-3, 1e-12, .leastNonzeroMagnitude])
    func nearZero(rate: Double) {
        #expect(divisor(0, rate) >= 60_000)
    }

    @Test("of the three settings the last one made counts, and each returns the value it was set to (R200)")
    func lastSettingCounts() {
        withSimulation { simulation in
            let loop = simulation.loop
            let recorded = RecordedLink(loop) { link in
                switch link.frame {
                case 1: link.preferredFramesPerSecond = 35
                case 3: link.frameInterval = 3
                case 6: link.preferredFrameRateRange = FrameRateRange(minimum: 10, maximum: 16, preferred: 15)
                case 10: link.preferredFramesPerSecond = 0
                default: break
                }
            }
            #expect(recorded.link.preferredFramesPerSecond == 0)
            #expect(recorded.link.frameInterval == 1)
            #expect(recorded.link.preferredFrameRateRange == .default)
            loop.run(in: .default, until: frame(12))
            #expect(recorded.frames == [1, 3, 6, 10, 11, 12])
            #expect(recorded.link.frameInterval == 3)
            #expect(recorded.link.preferredFrameRateRange.preferred == 15)
            recorded.link.preferredFramesPerSecond = 35
            #expect(recorded.link.preferredFramesPerSecond == 35)
        }
    }

    @Test("targetTimestamp is one period of the link's own later (R198)")
    func target() {
        withSimulation { simulation in
            let loop = simulation.loop
            let recorded = RecordedLink(loop, set: { $0.preferredFramesPerSecond = 20 })
            loop.run(in: .default, until: frame(4))
            #expect(recorded.frames == [1, 4])
            #expect(recorded.targets == [4, 7])
        }
    }

    @Test("a rate set outside the call counts from the call before, or from the next frame if that has passed")
    func outside() {
        withSimulation { simulation in
            let loop = simulation.loop
            let recorded = RecordedLink(loop, set: { $0.frameInterval = 6 })
            loop.timer(50) { _ in recorded.link.frameInterval = 4 }
            loop.timer(150) { _ in recorded.link.frameInterval = 1 }
            loop.run(in: .default, until: frame(11))
            #expect(recorded.frames == [1, 5, 9, 10, 11])
            loop.timer(190) { _ in recorded.link.frameInterval = 10 }
            loop.timer(250) { _ in recorded.link.frameInterval = 2 }
            loop.run(in: .default, until: frame(18))
            #expect(recorded.frames == [1, 5, 9, 10, 11, 16, 18])
            #expect(recorded.link.totalDroppedFrames == 0)
        }
    }

    @Test("a rate set before the first call does not move that call (R205)")
    func beforeFirstCall() {
        withSimulation { simulation in
            let loop = simulation.loop
            let recorded = RecordedLink(loop)
            recorded.link.frameInterval = 3
            loop.run(in: .default, until: frame(4))
            #expect(recorded.frames == [1, 4])
        }
    }

    @Test("a rate that is set just before every call does not put the call off")
    func setAgainAndAgain() {
        withSimulation { simulation in
            let loop = simulation.loop
            let recorded = RecordedLink(loop)
            let setter = DisplayLink { link in recorded.link.frameInterval = link.frame.isMultiple(of: 2) ? 1 : 2 }
            setter.add(to: loop, forMode: .default)
            // From now on the setter is first in every frame.
            recorded.link.isPaused = true
            recorded.link.isPaused = false
            loop.run(in: .default, until: frame(8))
            #expect(recorded.frames == [1, 3, 5, 7])
            #expect(recorded.link.totalDroppedFrames == 0)
        }
    }

    @Test("a rate setting that makes no sense traps (R201, R202)")
    func traps() async {
        await #expect(processExitsWith: .failure) { DisplayLink { _ in }.preferredFramesPerSecond = -1 }
        await #expect(processExitsWith: .failure) { DisplayLink { _ in }.frameInterval = 0 }
        await #expect(processExitsWith: .failure) { _ = FrameRateRange(minimum: 30, maximum: 20) }
        await #expect(processExitsWith: .failure) { _ = FrameRateRange(minimum: -1, maximum: 20) }
        await #expect(processExitsWith: .failure) { _ = FrameRateRange(minimum: 10, maximum: 20, preferred: 30) }
        await #expect(processExitsWith: .failure) { _ = FrameRateRange(minimum: .nan, maximum: 20) }
    }
}
