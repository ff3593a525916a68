import RunLoopKit
import Testing

@testable import FrameRate
@testable import RunLoopCore

@Suite("S6 The frame-rate label: its colour")
struct S06ColourTests {
    @Test("the colour goes from red at 12 to green at 60, saturated and nearly bright")
    func colour() {
        func reading(_ rate: Double) -> FrameRateMeter.Reading { FrameRateMeter.Reading(framesPerSecond: rate) }
        #expect(reading(60).hue == 0.27 * (60.0 / 60 - 0.2))
        #expect(reading(30).hue == 0.27 * (30.0 / 60 - 0.2))
        #expect(reading(12).hue == 0)
        #expect(reading(0).hue == 0)
        #expect(reading(10_000).hue == 1)
        #expect(reading(60).saturation == 1)
        #expect(reading(60).brightness == 0.9)
        #expect(reading(0).rgb == (230, 0, 0))
        #expect(reading(12).rgb == (230, 0, 0))
        // Hue 0.081: 0.9 × 0.486 of green.
        #expect(reading(30).rgb == (230, 112, 0))
        // Hue 0.216: 0.9 × (1 − 0.296) of red.
        #expect(reading(60).rgb == (162, 230, 0))
        // Hue 0.486: 0.9 × 0.916 of blue.
        #expect(reading(120).rgb == (0, 230, 210))
        #expect(reading(10_000).rgb == (230, 0, 0))
    }
}
