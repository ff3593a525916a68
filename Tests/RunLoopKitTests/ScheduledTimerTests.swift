import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("A scheduled timer is in the current loop; another is added by hand")
struct ScheduledTimerTests {
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

    @Test("the scheduled form needs nothing more, the other one is to be added", arguments: [false, true])
    func forms(withTarget: Bool) {
        withStory { simulation, story in
            let owner = Story.Owner(story)
            let interval = Duration.seconds(1)
            let unscheduled =
                withTarget
                ? Timer(timeInterval: interval, target: owner, selector: Story.Owner.tick, repeats: true)
                : Timer(timeInterval: interval, repeats: true) { [unowned owner] in owner.tick($0) }
            simulation.advance(to: seconds(2))
            #expect(story.lines == [])
            simulation.loop.add(unscheduled, forMode: .default)
            simulation.advance(to: seconds(3.5))
            #expect(story.lines == ["2.0 tick 1", "3.0 tick 2"])
            unscheduled.invalidate()

            let scheduled =
                withTarget
                ? Timer.scheduledTimer(
                    timeInterval: interval, target: owner, selector: Story.Owner.tick, repeats: true)
                : Timer.scheduledTimer(withTimeInterval: interval, repeats: true) { [unowned owner] in owner.tick($0) }
            simulation.advance(to: seconds(5.5))
            #expect(story.lines.suffix(2) == ["4.5 tick 3", "5.5 tick 4"])
            scheduled.invalidate()
        }
    }
}
