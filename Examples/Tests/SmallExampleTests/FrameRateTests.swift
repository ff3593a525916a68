import RunLoopKit
import Testing

@testable import FrameRate

@Suite("The colour of the frame-rate label follows the rate")
struct FrameRateTests {
    @Test("the colour goes from red at 12 to green at 60, saturated and nearly bright")
    func colour() throws {
        /// Returns a reading of this many frames in a second.
        func reading(_ frames: Int) throws -> FrameRateMeter.Reading {
            var meter = FrameRateMeter()
            var reading = meter.frame(at: RunLoop.Instant(nanoseconds: 0))
            // The last frame is measured; without any, the second is a million seconds long.
            for frame in 1...max(1, frames) {
                let time = frames == 0 ? 1_000_000_000_000_000 : 1_000_000_000 * frame / frames
                reading = meter.frame(at: RunLoop.Instant(nanoseconds: Int64(time)))
            }
            return try #require(reading)
        }
        #expect(try reading(60).hue == 0.27 * (60.0 / 60 - 0.2))
        #expect(try reading(30).hue == 0.27 * (30.0 / 60 - 0.2))
        #expect(try reading(12).hue == 0)
        #expect(try reading(0).hue == 0)
        #expect(try reading(10_000).hue == 1)
        #expect(try reading(60).saturation == 1)
        #expect(try reading(60).brightness == 0.9)
        #expect(try reading(0).rgb == (230, 0, 0))
        #expect(try reading(12).rgb == (230, 0, 0))
        // Hue 0.081: 0.9 × 0.486 of green.
        #expect(try reading(30).rgb == (230, 112, 0))
        // Hue 0.216: 0.9 × (1 − 0.296) of red.
        #expect(try reading(60).rgb == (162, 230, 0))
        // Hue 0.486: 0.9 × 0.916 of blue.
        #expect(try reading(120).rgb == (0, 230, 210))
        #expect(try reading(10_000).rgb == (230, 0, 0))
    }
}
