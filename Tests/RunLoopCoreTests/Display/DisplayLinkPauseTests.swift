import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopCore

@Suite("Display links that are paused, or changed in their own call")
struct DisplayLinkPauseTests {
    // MARK: Pausing

    @Test("a link is not paused at first; a pause makes up for nothing and drops nothing (R197)")
    func pause() {
        withSimulation { simulation in
            let loop = simulation.loop
            let recorded = RecordedLink(loop)
            #expect(!recorded.link.isPaused)
            loop.run(in: .default, until: frame(2))
            recorded.link.isPaused = true
            loop.run(in: .default, until: ms(1005))
            recorded.link.isPaused = false
            recorded.link.isPaused = false
            loop.run(in: .default, until: frame(62))
            #expect(recorded.frames == [1, 2, 61, 62])
            #expect(recorded.drops == [0, 0, 0, 0])
            #expect(recorded.link.totalDroppedFrames == 0)
        }
    }

    @Test("a link can be paused before it is added")
    func pausedBeforeAdding() {
        withSimulation { simulation in
            let loop = simulation.loop
            let recorded = RecordedLink(loop, set: { $0.isPaused = true })
            loop.run(in: .default, until: frame(5))
            recorded.link.isPaused = false
            loop.run(in: .default, until: frame(7))
            #expect(recorded.frames == [6, 7])
        }
    }

    @Test("a link paused inside its call rests, and continues in the frame after it is resumed")
    func pausedInside() {
        withSimulation { simulation in
            let loop = simulation.loop
            let recorded = RecordedLink(loop) { $0.isPaused = $0.frame == 2 }
            loop.timer(100) { _ in recorded.link.isPaused = false }
            loop.run(in: .default, until: frame(8))
            #expect(recorded.frames == [1, 2, 7, 8])
            #expect(recorded.link.totalDroppedFrames == 0)
        }
    }

    @Test("a link paused and resumed inside its call begins anew with the next frame")
    func pausedAndResumedInside() {
        withSimulation { simulation in
            let loop = simulation.loop
            let recorded = RecordedLink(loop, set: { $0.frameInterval = 5 }) { link in
                guard link.frame == 6 else { return }
                link.isPaused = true
                link.isPaused = false
                simulation.spend(.milliseconds(20))
            }
            loop.run(in: .default, until: frame(14))
            #expect(recorded.frames == [1, 6, 8, 13])
            #expect(recorded.drops == [0, 0, 0, 0])
        }
    }

    // MARK: Inside its own call

    @Test("a nested run inside its call does not call it again")
    func notReentered() {
        withSimulation { simulation in
            let loop = simulation.loop
            var depth = 0
            let recorded = RecordedLink(loop) { link in
                depth += 1
                #expect(depth == 1)
                if link.frame == 1 { loop.run(in: .default, until: ms(60)) }
                depth -= 1
            }
            loop.run(in: .default, until: frame(5))
            #expect(recorded.frames == [1, 4, 5])
            #expect(recorded.drops == [0, 2, 0])
        }
    }

    @Test("rates, pauses and modes set in a nested run inside its call wait for its end")
    func setInNestedRun() {
        withSimulation { simulation in
            let loop = simulation.loop
            let recorded = RecordedLink(loop) { link in
                guard link.frame == 1 else { return }
                loop.perform(afterDelay: .milliseconds(1)) {
                    link.frameInterval = 3
                    link.add(to: loop, forMode: .tracking)
                }
                loop.run(in: .default, until: ms(20))
                loop.checkInvariants()
            }
            loop.run(in: .tracking, until: ms(10))
            loop.run(in: .default, until: frame(2))
            loop.run(in: .tracking, until: frame(7))
            #expect(recorded.frames == [1, 4, 7])
        }
    }

    @Test("a link removed inside its call is not called any more; removed and added, in the next frame")
    func removedInside() {
        withSimulation { simulation in
            let loop = simulation.loop
            let gone = RecordedLink(loop) { $0.remove(from: loop, forMode: .default) }
            let back = RecordedLink(loop, set: { $0.frameInterval = 4 }) { link in
                link.remove(from: loop, forMode: .default)
                link.add(to: loop, forMode: .default)
            }
            loop.run(in: .default, until: frame(4))
            #expect(gone.frames == [1])
            #expect(back.frames == [1, 2, 3, 4])
            loop.checkInvariants()
        }
    }

    @Test("a link removed inside its call and added to another loop continues there")
    func movedInside() {
        withSimulation { outer in
            let first = outer.loop
            withSimulation { inner in
                let second = inner.loop
                let recorded = RecordedLink(second) { link in
                    guard link.frame == 2 else { return }
                    link.remove(from: second, forMode: .default)
                    link.add(to: first, forMode: .default)
                }
                second.run(in: .default)
                #expect(recorded.frames == [1, 2])
                first.checkInvariants()
                first.run(in: .default, until: frame(1))
                #expect(recorded.frames == [1, 2, 1])
            }
        }
    }
}
