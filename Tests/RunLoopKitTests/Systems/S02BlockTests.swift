import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("S2: a timer with a block, made in three ways")
struct S02BlockTests {
    @Test("timer: not scheduled; it fires once it has been added, one interval after it was made")
    func unscheduled() {
        withStory { simulation, story in
            let timer = Timer(timeInterval: .seconds(2), repeats: true) { _ in story.tell("fire") }
            simulation.advance(to: seconds(3))
            #expect(story.lines == [])
            simulation.loop.add(timer, forMode: .default)
            simulation.advance(to: seconds(7))
            // The date of 2 s had passed when the timer was added, and fires late.
            #expect(story.lines == ["3.0 fire", "4.0 fire", "6.0 fire"])
        }
    }

    @Test("scheduledTimer: in the current loop, in the default mode and in no other")
    func scheduled() {
        withStory { simulation, story in
            let loop = simulation.loop
            loop.addCommonMode(.tracking)
            let timer = Timer.scheduledTimer(withTimeInterval: .seconds(2), repeats: true) { _ in story.tell("fire") }
            #expect(loop.contains(timer, forMode: .default))
            #expect(!loop.contains(timer, forMode: .tracking))
            #expect(!loop.contains(timer, forMode: .common))
            simulation.advance(to: seconds(5))
            #expect(story.lines == ["2.0 fire", "4.0 fire"])
        }
    }

    @Test("init(fire:interval:repeats:): first at a date of its own, then by the interval")
    func dated() {
        withStory { simulation, story in
            let timer = Timer(fire: seconds(0.5), interval: .seconds(2), repeats: true) { _ in story.tell("fire") }
            simulation.loop.add(timer, forMode: .default)
            simulation.advance(to: seconds(5))
            #expect(story.lines == ["0.5 fire", "2.5 fire", "4.5 fire"])
        }
    }

    @Test("the loop keeps the timer and the timer its block, until invalidate")
    func ownership() {
        withStory { simulation, story in
            let token: Weak<Token>
            let timer: Weak<Timer>
            do {
                let kept = Token()
                token = Weak(kept)
                timer = Weak(Timer.scheduledTimer(withTimeInterval: .seconds(2), repeats: true) { _ in kept.touch() })
            }
            simulation.advance(to: seconds(3))
            #expect(!timer.isGone && !token.isGone)
            timer.object?.invalidate()
            #expect(timer.isGone && token.isGone)
        }
    }
}
