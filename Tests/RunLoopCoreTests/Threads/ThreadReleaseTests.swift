import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("A thread and its timer are released in order", .timeLimit(.minutes(15)))
struct ThreadReleaseTests {
    /// An object that started the thread and is kept by the thread's body, as if the body were its method.
    private final class Owner: Sendable {
        let story: Story
        let threads = Log<UInt>()
        let timers = Log<Weak<Timer>>()

        init(_ story: Story) {
            self.story = story
        }

        deinit {
            story.tell("owner gone")
        }

        func run() {
            let proxy = Proxy(self)
            let timer = Timer.scheduledTimer(
                timeInterval: .seconds(2), target: proxy, selector: Proxy.tick, repeats: true)
            timer.invalidationHandler = { [story] in story.tell("timer invalid") }
            timers.append(Weak(timer))
        }
    }

    /// An object that the timer keeps, and that does not keep the owner.
    private final class Proxy {
        private weak var owner: Owner?
        private let story: Story
        private var count = 0

        init(_ owner: Owner) {
            self.owner = owner
            story = owner.story
        }

        deinit {
            story.tell("proxy gone, owner \(owner == nil ? "gone" : "alive")")
        }

        func tick(_ timer: Timer) {
            owner?.threads.append(threadNumber())
            story.tell("num = \(count)")
            count += 1
            if count > 3 { timer.invalidate() }
        }
    }

    @Test(
        "after invalidate the timer releases the proxy, the loop has nothing left, and the owner ends with the thread")
    func order() {
        withStory { simulation, story in
            let (threads, timers): (Log<UInt>, Log<Weak<Timer>>)
            let thread: LoopThread
            do {
                let owner = Owner(story)
                (threads, timers) = (owner.threads, owner.timers)
                thread = LoopThread(name: "secondary") { _ in owner.run() }
            }
            thread.join()
            story.tell("thread ended")
            #expect(
                story.lines == [
                    "2.0 num = 0", "4.0 num = 1", "6.0 num = 2", "8.0 num = 3", "8.0 timer invalid",
                    "8.0 proxy gone, owner alive", "8.0 owner gone", "8.0 thread ended",
                ])
            #expect(timers.entries.map(\.isGone) == [true])
            #expect(Set(threads.entries).count == 1)
            #expect(threads.entries.first != threadNumber())
            #expect(!thread.remote.perform { _ in })
        }
    }
}
