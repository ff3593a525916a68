import FoundationEssentials
import RunLoopFoundation
import RunLoopKit
import Testing

@Suite("Wall times and dates")
struct WallTimeDateTests {
    @Test("a date and its wall time go together")
    func roundTrip() {
        #expect(RunLoop.WallTime(Date(timeIntervalSince1970: 0)).nanoseconds == 0)
        #expect(RunLoop.WallTime(Date(timeIntervalSince1970: -1.5)).nanoseconds == -1_500_000_000)
        #expect(Date(RunLoop.WallTime(nanoseconds: -250_000_000)) == Date(timeIntervalSince1970: -0.25))
        #expect(Date(RunLoop.WallTime(nanoseconds: 1_500_000_000)) == Date(timeIntervalSince1970: 1.5))
        // A date is coarser than a nanosecond, except close to the reference date.
        for day in stride(from: -80_000.0, through: 80_000, by: 1_777) where abs(day) > 2_000 {
            let date = Date(timeIntervalSinceReferenceDate: day * 86_400 + 1 / 3)
            #expect(Date(RunLoop.WallTime(date)) == date)
        }
    }

    @Test("dates that are too far away saturate")
    func saturation() {
        #expect(RunLoop.WallTime(Date.distantFuture) == .distantFuture)
        #expect(RunLoop.WallTime(Date.distantPast) == .distantPast)
        #expect(RunLoop.WallTime(Date(timeIntervalSince1970: .infinity)) == .distantFuture)
        #expect(RunLoop.WallTime(Date(timeIntervalSince1970: -.infinity)) == .distantPast)
        #expect(RunLoop.WallTime(Date(timeIntervalSince1970: -9_223_372_036.9)) == .distantPast)
        #expect(Date(RunLoop.WallTime.distantFuture) == .distantFuture)
        #expect(Date(RunLoop.WallTime.distantPast) == .distantPast)
    }

    @Test("a date that is not a number is refused")
    func notANumber() async {
        await #expect(processExitsWith: .failure) { _ = RunLoop.WallTime(Date(timeIntervalSince1970: .nan)) }
    }
}
