import RunLoopKit
import TestSupport
import Testing

@testable import RunLoopCore

@Suite("Instants")
struct InstantTests {
    @Test("instants add, subtract and compare")
    func arithmetic() {
        #expect(ms(10) + .milliseconds(5) == ms(15))
        #expect(ms(10) - .milliseconds(15) == ms(-5))
        #expect(ms(10) - ms(25) == .milliseconds(-15))
        #expect(ms(10).advanced(by: .seconds(1)) == ms(1010))
        #expect(ms(10).duration(to: ms(25)) == .milliseconds(15))
        #expect(ms(10) < ms(11))
    }

    @Test("sums that cannot be represented saturate")
    func saturation() {
        #expect(ms(1) + .nanoseconds(Int64.max) == .distantFuture)
        #expect(ms(1) + .seconds(Int64.max) == .distantFuture)
        #expect(ms(-1) - .nanoseconds(Int64.max) == .distantPast)
        #expect(RunLoop.Instant.distantFuture - .distantPast == .nanoseconds(Int64.max))
        #expect(RunLoop.Instant.distantPast - .distantFuture == .nanoseconds(Int64.min))
        let half = Duration(secondsComponent: 0, attosecondsComponent: 500_000_000)
        #expect((.seconds(2) + half).nanoseconds == 2_000_000_001 && (.zero - half).nanoseconds == -1)
        #expect((.seconds(2) + half * 0.9).nanoseconds == 2_000_000_000)
        #expect(Duration.seconds(Int64.max).nanoseconds == .max && Duration.seconds(Int64.min).nanoseconds == .min)
    }

    @Test("sums saturate also where the duration alone exceeds the range of an instant")
    func hugeDurations() {
        #expect(ms(-1000) + .seconds(Int64.max) == .distantFuture)
        #expect(ms(1000) + .seconds(-Int64.max) == .distantPast)
        #expect(ms(1000) - .seconds(Int64.max) == .distantPast)
        #expect(ms(-1000) - .seconds(-Int64.max) == .distantFuture)
    }

    @Test("no duration traps", arguments: [Int64.min, -1, 0, 1, .max])
    func extremes(nanoseconds: Int64) {
        let (longest, lowest) = (Duration(attoseconds: .max), Duration(attoseconds: .min))
        #expect(ns(nanoseconds) + longest == .distantFuture && ns(nanoseconds) - longest == .distantPast)
        #expect(ns(nanoseconds) + lowest == .distantPast && ns(nanoseconds) - lowest == .distantFuture)
    }

    @Test("durations are rounded to the nearest nanosecond")
    func rounding() {
        #expect(ns(0) + Duration(secondsComponent: 0, attosecondsComponent: 1_499_999_999) == ns(1))
        #expect(ns(0) + Duration(secondsComponent: 0, attosecondsComponent: 1_500_000_000) == ns(2))
        #expect(ns(0) + Duration(secondsComponent: 0, attosecondsComponent: -1_500_000_000) == ns(-2))
    }

    @Test("an instant is written as seconds with nine digits")
    func description() {
        #expect(ns(2_000_000_000).description == "2.000000000")
        #expect(ns(-1_000_000_001).description == "-1.000000001")
        #expect(RunLoop.Instant.distantFuture.description == "distantFuture")
        #expect(RunLoop.Instant.distantPast.description == "distantPast")
    }
}
