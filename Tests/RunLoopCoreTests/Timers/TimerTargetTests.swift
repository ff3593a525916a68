import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("A timer keeps its target until it is invalidated")
struct TimerTargetTests {
    @Test("a repeating timer keeps its target and userInfo until invalidate, and releases them there")
    func repeating() {
        withStory { simulation, story in
            let timer: Timer
            let (target, info): (Weak<Story.Owner>, Weak<Token>)
            do {
                let owner = Story.Owner(story)
                let token = Token { story.tell("userInfo gone") }
                timer = Timer.scheduledTimer(
                    timeInterval: .seconds(2), target: owner, selector: Story.Owner.tick, userInfo: token,
                    repeats: true)
                (target, info) = (Weak(owner), Weak(token))
            }
            simulation.advance(to: seconds(5))
            #expect(timer.userInfo as? Token === info.object)
            #expect(!target.isGone && !info.isGone)

            timer.invalidate()
            #expect(target.isGone && info.isGone)
            #expect(timer.userInfo == nil)
            simulation.advance(to: seconds(9))
            #expect(Array(story.lines.prefix(2)) == ["2.0 tick 1", "4.0 tick 2"])
            #expect(Set(story.lines.dropFirst(2)) == ["5.0 owner gone", "5.0 userInfo gone"])
        }
    }

    @Test("a one-shot releases its target when it has fired")
    func oneShot() {
        withStory { simulation, story in
            Timer.scheduledTimer(
                timeInterval: .seconds(5), target: Story.Owner(story), selector: Story.Owner.tick, repeats: false)
            simulation.advance(to: seconds(9))
            #expect(story.lines == ["5.0 tick 1", "5.0 owner gone"])
        }
    }

    @Test("a target that invalidates its timer in the method is kept until the method returns")
    func invalidatedInside() {
        final class OneTick {
            let story: Story
            init(_ story: Story) { self.story = story }
            deinit { story.tell("gone") }
            func tick(_ timer: Timer) {
                story.tell("begins")
                timer.invalidate()
                story.simulation.spend(.seconds(1))
                story.tell("ends")
            }
        }
        withStory { simulation, story in
            Timer.scheduledTimer(
                timeInterval: .seconds(2), target: OneTick(story), selector: OneTick.tick, repeats: true)
            simulation.advance(to: seconds(9))
            #expect(story.lines == ["2.0 begins", "3.0 ends", "3.0 gone"])
        }
    }
}
