import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("A delayed call keeps its receiver until it is made or taken back", .timeLimit(.minutes(15)))
struct DelayedCallLifetimeTests {
    private final class Receiver {
        let story: Story

        init(_ story: Story) {
            self.story = story
        }

        deinit {
            story.tell("receiver gone")
        }

        func act() {
            story.tell("act")
        }

        func act(on argument: String) {
            story.tell("act on \(argument)")
        }
    }

    @Test("the receiver is kept until the call has been made")
    func made() {
        withStory { simulation, story in
            simulation.loop.perform(Receiver.act, target: Receiver(story), afterDelay: .seconds(5))
            simulation.advance(to: seconds(9))
            #expect(story.lines == ["5.0 act", "5.0 receiver gone"])
        }
    }

    @Test("cancelled by its token, the call is not made and the receiver goes at once")
    func byToken() {
        withStory { simulation, story in
            let call = simulation.loop.perform(Receiver.act, target: Receiver(story), afterDelay: .seconds(5))
            simulation.advance(to: seconds(3))
            #expect(call.isPending)
            call.cancel()
            #expect(!call.isPending)
            #expect(story.lines == ["3.0 receiver gone"])
            simulation.advance(to: seconds(9))
            #expect(story.lines.count == 1)
        }
    }

    @Test("cancelled by its target, every call of it is taken back, and no other")
    func byTarget() {
        withStory { simulation, story in
            let loop = simulation.loop
            let other = Receiver(story)
            loop.perform(Receiver.act(on:), target: other, with: "another's", afterDelay: .seconds(5))
            do {
                let receiver = Receiver(story)
                loop.perform(Receiver.act, target: receiver, afterDelay: .seconds(5))
                loop.perform(Receiver.act(on:), target: receiver, with: "a", named: "act", afterDelay: .seconds(6))
                simulation.advance(to: seconds(3))
                loop.cancelPreviousPerformRequests(withTarget: receiver)
            }
            #expect(story.lines == ["3.0 receiver gone"])
            simulation.advance(to: seconds(9))
            #expect(story.lines == ["3.0 receiver gone", "5.0 act on another's"])
            withExtendedLifetime(other) {}
        }
    }

    @Test("cancelled by target, name and argument, only the equal call is taken back")
    func byName() {
        withStory { simulation, story in
            let loop = simulation.loop
            do {
                let receiver = Receiver(story)
                for text in ["a", "b"] {
                    loop.perform(Receiver.act(on:), target: receiver, with: text, named: "act", afterDelay: .seconds(5))
                }
                loop.perform(Receiver.act, target: receiver, named: "act", afterDelay: .seconds(6))
                loop.cancelPreviousPerformRequests(withTarget: receiver, named: "act", argument: "a")
            }
            simulation.advance(to: seconds(9))
            #expect(story.lines == ["5.0 act on b", "6.0 act", "6.0 receiver gone"])
        }
    }

    @Test("the call waits for one of its modes to run")
    func modes() {
        withStory { simulation, story in
            simulation.drag(from: seconds(1), until: seconds(4))
            simulation.loop.perform(afterDelay: .seconds(2)) { story.tell("default") }
            simulation.loop.perform(afterDelay: .seconds(2), inModes: [.default, .tracking]) { story.tell("both") }
            simulation.advance(to: seconds(9))
            #expect(story.lines == ["2.0 both", "4.0 default"])
        }
    }

    @Test("on a thread whose loop does not run the call is never made; the receiver is released with the thread")
    func deadThread() {
        let (isMade, isGone) = (Flag(), Flag())
        let wasKept = onThread {
            let token = Token { isGone.set() }
            RunLoop.current.perform(afterDelay: .zero) {
                token.touch()
                isMade.set()
            }
            return !isGone.isSet
        }
        #expect(wasKept)
        #expect(!isMade.isSet)
        #expect(isGone.isSet)
    }
}
