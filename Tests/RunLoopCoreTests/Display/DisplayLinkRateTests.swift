import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@testable import RunLoopCore

@Suite("A display link is called in the frames of its rate, in the modes it was added to")
struct DisplayLinkRateTests {
    @Test("with a target, not scheduled: the caller adds it to a mode")
    func unscheduled() {
        withSimulation { simulation in
            let loop = simulation.loop
            let stepper = Stepper()
            let link = DisplayLink(target: stepper, selector: Stepper.step)
            #expect(loop.isEmpty(.default))
            link.add(to: loop, forMode: .default)
            simulation.advance(by: .seconds(1))
            #expect(stepper.steps == 60)
            link.invalidate()
        }
    }

    @Test("the scheduled forms are in the common modes of the current loop")
    func scheduled() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.addCommonMode(.tracking)
            let (strong, weak) = (Stepper(), Stepper())
            var calls = 0
            let links = [
                DisplayLink.scheduledDisplayLink { _ in calls += 1 },
                DisplayLink.scheduledDisplayLink(target: strong, selector: Stepper.step),
                DisplayLink.scheduledDisplayLink(weakTarget: weak, selector: Stepper.step),
            ]
            loop.run(in: .default, until: ms(500))
            loop.run(in: .tracking, until: ms(1000))
            #expect([calls, strong.steps, weak.steps] == [60, 60, 60])
            for link in links { link.remove(from: loop, forMode: .common) }
            #expect(loop.isEmpty(.tracking))
            #expect(links.allSatisfy { $0.isValid })
        }
    }

    @Test("30 calls a second on 60 frames are every second frame, by rate and by interval (X12)")
    func thirty() {
        withSimulation { simulation in
            let loop = simulation.loop
            let byRate = RecordedLink(loop, set: { $0.preferredFramesPerSecond = 30 })
            let byInterval = RecordedLink(loop, set: { $0.frameInterval = 2 })
            loop.run(in: .default, until: ms(1000))
            #expect(byRate.frames == Array(stride(from: 1, through: 59, by: 2)))
            #expect(byInterval.frames == byRate.frames)
        }
    }

    @Test("during a drag a link in the default mode rests, and one in the common modes loses nothing (X12)")
    func drag() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.addCommonMode(.tracking)
            let plain = RecordedLink(loop, set: { $0.preferredFramesPerSecond = 30 })
            let common = RecordedLink(loop, in: .common, set: { $0.preferredFramesPerSecond = 30 })
            simulation.drag(from: ms(1000), until: ms(2000))
            simulation.advance(to: ms(3000))
            #expect(plain.frames.filter { $0 < 60 }.count == 30)
            #expect(plain.frames.filter { (60...120).contains($0) } == [])
            #expect(common.frames.count == 90)
            #expect(common.link.totalDroppedFrames == 0)
            #expect(plain.frames.count + plain.link.totalDroppedFrames == 90)
        }
    }

    @Test("the timestamp tells how far an animation is")
    func animation() {
        withSimulation { simulation in
            var begin: RunLoop.Instant?
            var progress: [Double] = []
            DisplayLink.scheduledDisplayLink { link in
                let start = begin ?? link.timestamp
                begin = start
                progress.append((link.timestamp - start) / .milliseconds(500))
                if progress.last! >= 1 { link.invalidate() }
            }
            #expect(simulation.loop.run(in: .default) == .finished)
            #expect(progress.count == 31)
            #expect(progress.first == 0)
            #expect(progress.last == 1)
        }
    }
}
