import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@testable import RunLoopCore

@Suite("A meter reads the frames of each second")
struct FrameRateMeterTests {
    @Test("the first frame is only noted; from one second on there is a reading of frames by time")
    func arithmetic() {
        var meter = FrameRateMeter()
        #expect(meter.frame(at: ms(5000)) == nil)
        #expect(meter.frame(at: ms(5400)) == nil)
        #expect(meter.frame(at: ms(5999)) == nil)
        #expect(meter.frame(at: ms(6000))?.framesPerSecond == 3)
        #expect(meter.frame(at: ms(6600)) == nil)
        #expect(meter.frame(at: ms(8000))?.framesPerSecond == 1)
        #expect(meter.frame(at: ns(8_999_999_999)) == nil)
        #expect(meter.frame(at: ms(12_000))?.framesPerSecond == 0.5)
    }

    @Test("on a link of 60 frames it reads 60, every second (X13)")
    func sixty() {
        withSimulation { simulation in
            let loop = simulation.loop
            var meter = FrameRateMeter()
            var readings: [(RunLoop.Instant, FrameRateMeter.Reading)] = []
            DisplayLink.scheduledDisplayLink { link in
                if let reading = meter.frame(at: link.timestamp) { readings.append((loop.now, reading)) }
            }
            loop.run(in: .default, until: ms(5000))
            #expect(readings.map(\.0) == [frame(61), frame(121), frame(181), frame(241)])
            #expect(readings.allSatisfy { $0.1.framesPerSecond == 60 })
            #expect(readings.allSatisfy { $0.1.description == "60 FPS" })
        }
    }

    @Test("while the loop is busy for more than a frame of each pair, or of every other pair, it reads less (X13)")
    func busy() {
        // From 1 ms before a frame until 0.3 ms after the next. The call for the first is put off, and as the second
        // has begun, into the next pair; there it is late again, and made at once: one in two pairs.
        #expect(readings(busyFor: .milliseconds(18), timesPerSecond: 30) == ["15 FPS", "15 FPS", "15 FPS"])
        // Here the waiting call is in time: two frames are lost and two are called.
        #expect(readings(busyFor: .milliseconds(18), timesPerSecond: 15) == ["30 FPS", "30 FPS", "30 FPS"])
        // A delay of less than a frame only makes the call late.
        #expect(readings(busyFor: .milliseconds(16), timesPerSecond: 30) == ["60 FPS", "60 FPS", "60 FPS"])
    }

    private func readings(busyFor length: Duration, timesPerSecond: Int64) -> [String] {
        withSimulation { simulation in
            let loop = simulation.loop
            let busy = Timer(fire: ns(-1_000_000), interval: .seconds(1) / timesPerSecond, repeats: true) { _ in
                simulation.spend(length)
            }
            loop.add(busy, forMode: .default)
            var meter = FrameRateMeter()
            var texts: [String] = []
            DisplayLink.scheduledDisplayLink { link in
                if let reading = meter.frame(at: link.timestamp) { texts.append(reading.description) }
            }
            loop.run(in: .default, until: ms(3300))
            return texts
        }
    }

    @Test("a second of the display may take another time, for replays")
    func scaled() {
        withSimulation { simulation in
            let loop = simulation.loop
            var meter = FrameRateMeter(second: .milliseconds(100))
            var readings: [Double] = []
            DisplayLink.scheduledDisplayLink(clock: FrameClock(framesPerSecond: 60, per: .milliseconds(100))) { link in
                if let reading = meter.frame(at: link.timestamp) { readings.append(reading.framesPerSecond) }
            }
            loop.run(in: .default, until: ms(350))
            #expect(readings == [60, 60, 60])
        }
    }

    @Test("the figure is rounded to a whole number")
    func text() {
        let texts = [0, 29.4, 29.5, 59.94, 60, 119.9].map { FrameRateMeter.Reading(framesPerSecond: $0).description }
        #expect(texts == ["0 FPS", "29 FPS", "30 FPS", "60 FPS", "60 FPS", "120 FPS"])
    }
}
