import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("S4: a block or a target, scheduled at once or by hand")
struct S04FormsTests {
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
