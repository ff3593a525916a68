import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@testable import RunLoopCore

@Suite("Dropped frames")
struct DroppedFrameTests {
    @Test("after a long callback of its own there is one call, in the next frame (R203)")
    func ownCallback() {
        withSimulation { simulation in
            let loop = simulation.loop
            let recorded = RecordedLink(loop) { link in
                if link.frame == 2 { simulation.spend(.milliseconds(60)) }
            }
            loop.run(in: .default, until: frame(8))
            // The handler ended at 93.3 ms, in frame 5.
            #expect(recorded.frames == [1, 2, 6, 7, 8])
            #expect(recorded.drops == [0, 0, 3, 0, 0])
            #expect(recorded.link.totalDroppedFrames == 3)
            #expect(recorded.targets == [2, 3, 7, 8, 9])
        }
    }

    @Test("with every second frame the count begins anew with the late call: 0, 3, 5, 7 (R203)")
    func everySecond() {
        withSimulation { simulation in
            let loop = simulation.loop
            let clock = FrameClock(start: frame(1))
            let recorded = RecordedLink(loop, clock: clock, set: { $0.frameInterval = 2 }) { link in
                if link.frame == 0 { simulation.spend(.milliseconds(40)) }
            }
            loop.run(in: .default, until: frame(8))
            #expect(recorded.frames == [0, 3, 5, 7])
            #expect(recorded.drops == [0, 1, 0, 0])
        }
    }

    @Test("with every second frame only those whose turn it was are dropped")
    func everySecondLong() {
        withSimulation { simulation in
            let loop = simulation.loop
            let recorded = RecordedLink(loop, set: { $0.frameInterval = 2 }) { link in
                if link.frame == 1 { simulation.spend(.milliseconds(120)) }
            }
            loop.run(in: .default, until: frame(13))
            // The handler ended at 136.7 ms, in frame 8; the turns were 3, 5 and 7.
            #expect(recorded.frames == [1, 9, 11, 13])
            #expect(recorded.drops == [0, 3, 0, 0])
        }
    }

    @Test("a callback that ends before its next turn drops nothing, however long")
    func longButInTime() {
        withSimulation { simulation in
            let loop = simulation.loop
            let recorded = RecordedLink(loop, set: { $0.frameInterval = 4 }) { _ in
                simulation.spend(.milliseconds(60))
            }
            loop.run(in: .default, until: frame(9))
            #expect(recorded.frames == [1, 5, 9])
            #expect(recorded.link.totalDroppedFrames == 0)
        }
    }

    @Test("a callback that ends exactly at its next turn has lost that turn")
    func endsAtTurn() {
        withSimulation { simulation in
            let loop = simulation.loop
            let clock = FrameClock(framesPerSecond: 25)
            let recorded = RecordedLink(loop, clock: clock) { _ in simulation.spend(.milliseconds(40)) }
            loop.run(in: .default, until: ms(200))
            #expect(recorded.frames == [1, 3, 5])
            #expect(recorded.drops == [0, 1, 1])
        }
    }

    @Test("a call that is late by less than a frame is made at once, for its own frame (R198)")
    func lateWithinFrame() {
        withSimulation { simulation in
            let loop = simulation.loop
            let recorded = RecordedLink(loop)
            loop.timer(15) { _ in simulation.spend(ns(33_333_332) - ms(15)) }
            loop.run(in: .default, until: frame(2))
            #expect(recorded.frames == [1, 2])
            #expect(recorded.drops == [0, 0])
        }
    }

    @Test("late by a whole frame or more the frame is lost, and the call waits for the next one (R203)")
    func lateByFrame() {
        withSimulation { simulation in
            let loop = simulation.loop
            var calls: [RunLoop.Instant] = []
            let recorded = RecordedLink(loop) { _ in calls.append(loop.now) }
            loop.timer(15) { _ in simulation.spend(ns(33_333_333) - ms(15)) }
            loop.timer(60) { _ in simulation.spend(.milliseconds(50)) }
            loop.run(in: .default, until: frame(8))
            // Blocked until frame 2 exactly, then from 60 ms in frame 3 to 110 ms in frame 6.
            #expect(recorded.frames == [3, 7, 8])
            #expect(recorded.drops == [2, 3, 0])
            #expect(calls == [frame(3), frame(7), frame(8)])
        }
    }

    @Test("a call that was put off and is late again is made at once: a busy loop still calls its links")
    func alwaysLate() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.timer(0, every: 40) { _ in simulation.spend(.milliseconds(39)) }
            var calls: [RunLoop.Instant] = []
            let recorded = RecordedLink(loop) { _ in calls.append(loop.now) }
            loop.run(in: .default, until: ms(190))
            // At 39 ms frame 1 is lost and the link aims at 3; at 79 ms that is lost, too, and the loop is in frame 4.
            #expect(recorded.frames == [4, 9])
            #expect(recorded.drops == [3, 4])
            #expect(calls == [ms(79), ms(159)])
        }
    }

    @Test("frames during a run in another mode are dropped; the call then waits for a boundary")
    func otherMode() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.keepAlive(in: .tracking)
            let recorded = RecordedLink(loop)
            let slow = RecordedLink(loop, set: { $0.frameInterval = 2 })
            loop.run(in: .default, until: frame(3))
            loop.run(in: .tracking, until: ms(1010))
            loop.run(in: .default, until: frame(63))
            #expect(recorded.frames == [1, 2, 3, 61, 62, 63])
            #expect(recorded.drops == [0, 0, 0, 57, 0, 0])
            // The link's turns were 5, 7, … 59.
            #expect(slow.frames == [1, 3, 61, 63])
            #expect(slow.drops == [0, 0, 28, 0])
        }
    }

    @Test("back in its mode within the frame, nothing is lost")
    func otherModeShortly() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.keepAlive(in: .tracking)
            let recorded = RecordedLink(loop)
            loop.run(in: .default, until: frame(1))
            loop.run(in: .tracking, until: ms(40))
            loop.run(in: .default, until: frame(4))
            #expect(recorded.frames == [1, 2, 3, 4])
            #expect(recorded.link.totalDroppedFrames == 0)
        }
    }

    @Test("frames lost just before a pause, or a removal, are forgotten")
    func forgotten() {
        withSimulation { simulation in
            let loop = simulation.loop
            let (paused, removed) = (RecordedLink(loop), RecordedLink(loop))
            loop.run(in: .default, until: frame(1))
            simulation.spend(.milliseconds(100))
            paused.link.isPaused = true
            paused.link.isPaused = false
            removed.link.remove(from: loop, forMode: .default)
            removed.link.add(to: loop, forMode: .default)
            loop.run(in: .default, until: frame(8))
            #expect(paused.frames == [1, 8])
            #expect(removed.frames == [1, 8])
            #expect(paused.drops == [0, 0])
            #expect(removed.drops == [0, 0])
        }
    }
}
