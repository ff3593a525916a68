import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("A timer with a weak target lets the target go, and ends with it")
struct WeakTargetTests {
    @Test("the owner is free to go; its deinit runs at once and invalidates the timer")
    func ownerGoes() {
        withStory { simulation, story in
            var owner: Story.Owner? = Story.Owner(story)
            let timer = Timer.scheduledTimer(
                timeInterval: .seconds(2), weakTarget: owner!, selector: Story.Owner.tick, repeats: true)
            owner?.timer = timer
            simulation.advance(to: seconds(7))
            #expect(timer.isValid)
            owner = nil
            #expect(!timer.isValid)
            #expect(!simulation.loop.contains(timer, forMode: .default))
            simulation.advance(to: seconds(12))
            #expect(story.lines == ["2.0 tick 1", "4.0 tick 2", "6.0 tick 3", "7.0 owner gone"])
        }
    }

    @Test("when the target has gone without a word, the timer invalidates itself instead of firing")
    func targetGoes() {
        withStory { simulation, story in
            var owner: Story.Owner? = Story.Owner(story)
            let timer = Timer.scheduledTimer(
                timeInterval: .seconds(2), weakTarget: owner!, selector: Story.Owner.tick, repeats: true)
            timer.invalidationHandler = { story.tell("timer invalid") }
            simulation.loop.perform(at: seconds(5)) { owner = nil }
            #expect(simulation.loop.run(in: .default) == .finished)
            #expect(story.lines == ["2.0 tick 1", "4.0 tick 2", "5.0 owner gone", "6.0 timer invalid"])
            #expect(simulation.now == seconds(6))
        }
    }

    @Test("the last reference may go inside the tick: the owner lives until the tick ends")
    func goesInside() {
        final class Hermit {
            var timer: Timer?
            var own: Hermit?
            let story: Story
            init(_ story: Story) { self.story = story }
            deinit {
                timer?.invalidate()
                story.tell("gone")
            }
            func tick(_ timer: Timer) {
                own = nil
                story.tell("tick")
            }
        }
        withStory { simulation, story in
            do {
                let owner = Hermit(story)
                owner.own = owner
                owner.timer = Timer.scheduledTimer(
                    timeInterval: .seconds(2), weakTarget: owner, selector: Hermit.tick, repeats: true)
            }
            #expect(simulation.loop.run(in: .default) == .finished)
            #expect(story.lines == ["2.0 tick", "2.0 gone"])
        }
    }

    @Test("a block that captures its owner weakly does the same")
    func weakBlock() {
        withStory { simulation, story in
            var owner: Story.Owner? = Story.Owner(story)
            owner?.timer = Timer.scheduledTimer(withTimeInterval: .seconds(2), repeats: true) { [weak owner] timer in
                owner?.tick(timer)
            }
            simulation.advance(to: seconds(3))
            owner = nil
            #expect(simulation.loop.run(in: .default) == .finished)
            #expect(story.lines == ["2.0 tick 1", "3.0 owner gone"])
        }
    }
}
