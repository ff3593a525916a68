import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("A timer ends by invalidate, fires where its loop runs, and does not pile up", .timeLimit(.minutes(15)))
struct TimerRulesTests {
    @Test("a one-shot needs no invalidate; it keeps its target until it fires, then releases it")
    func oneShot() {
        withStory { simulation, story in
            let owner: Weak<Story.Owner>
            let timer: Timer
            do {
                let target = Story.Owner(story)
                owner = Weak(target)
                timer = Timer.scheduledTimer(
                    timeInterval: .seconds(5), target: target, selector: Story.Owner.tick, repeats: false)
            }
            simulation.advance(to: seconds(4.9))
            #expect(!owner.isGone)
            simulation.advance(to: seconds(9))
            #expect(!timer.isValid)
            #expect(story.lines == ["5.0 tick 1", "5.0 owner gone"])
        }
    }

    @Test("a repeating timer keeps its target until invalidate; to drop one's own reference does not stop it")
    func repeating() {
        withStory { simulation, story in
            let owner: Weak<Story.Owner>
            let weakTimer: Weak<Timer>
            do {
                let target = Story.Owner(story)
                owner = Weak(target)
                var timer: Timer? = Timer.scheduledTimer(
                    timeInterval: .seconds(2), target: target, selector: Story.Owner.tick, repeats: true)
                weakTimer = Weak(timer)
                timer = nil
            }
            simulation.advance(to: seconds(7))
            #expect(!owner.isGone)
            #expect(story.lines == ["2.0 tick 1", "4.0 tick 2", "6.0 tick 3"])
            weakTimer.object?.invalidate()
            #expect(owner.isGone && weakTimer.isGone)
        }
    }

    @Test("invalidate takes the timer out of the loop and releases target and userInfo before it returns")
    func invalidate() {
        withStory { simulation, story in
            let loop = simulation.loop
            let token: Weak<Token>
            let timer: Timer
            do {
                let info = Token()
                token = Weak(info)
                timer = Timer(
                    timeInterval: .seconds(2), target: Story.Owner(story), selector: Story.Owner.tick, userInfo: info,
                    repeats: true)
            }
            loop.add(timer, forMode: [.default, .tracking])
            timer.invalidate()
            #expect(story.lines == ["0.0 owner gone"])
            #expect(token.isGone)
            #expect(!loop.contains(timer, forMode: .default) && !loop.contains(timer, forMode: .tracking))
            #expect(loop.run(in: .default) == .finished)
            #expect(story.lines.count == 1)
        }
    }

    @Test("invalidate and cancel belong to the timer's thread; its remote brings them there, and the thread can end")
    func otherThread() {
        // Tests/compile-checks checks that they do not compile on another thread.
        withStory { simulation, story in
            let remotes = Log<Timer.Remote>()
            let thread = LoopThread(name: "worker") { loop in
                let timer = Timer.scheduledTimer(withTimeInterval: .seconds(2), repeats: true) { _ in
                    story.tell("tick")
                }
                remotes.append(timer.remote)
                let call = loop.perform(afterDelay: .seconds(100)) { story.tell("never") }
                loop.perform(afterDelay: .seconds(4)) { call.cancel() }
            }
            simulation.advance(to: seconds(5))
            for remote in remotes.entries { remote.invalidate() }
            thread.join()
            story.tell("ended")
            #expect(story.lines == ["2.0 tick", "4.0 tick", "5.0 ended"])
        }
    }

    @Test("a timer works only on a thread whose loop runs")
    func runningLoop() {
        withStory { simulation, story in
            Timer.scheduledTimer(withTimeInterval: .seconds(2), repeats: true) { _ in story.tell("here") }
            let other = LoopThread(name: "worker") { _ in
                Timer.scheduledTimer(withTimeInterval: .seconds(2), repeats: true) { _ in story.tell("worker") }
            }
            // Only the worker's loop runs here.
            simulation.spend(.seconds(5))
            #expect(story.lines == ["2.0 worker", "4.0 worker"])
            simulation.loop.run(in: .default, until: seconds(5))
            #expect(story.lines.last == "5.0 here")
            other.stop()
            other.join()
        }
    }

    @Test("a timer is late because the loop is busy or because of the mode; common modes cure the second only")
    func twoReasons() {
        withStory { simulation, story in
            let loop = simulation.loop
            loop.addCommonMode(.tracking)
            loop.add(Timer(timeInterval: .seconds(2), repeats: true) { _ in story.tell("default") }, forMode: .default)
            loop.add(Timer(timeInterval: .seconds(2), repeats: true) { _ in story.tell("common") }, forMode: .common)
            simulation.drag(from: seconds(3), until: seconds(5))
            loop.perform(at: seconds(7)) { simulation.spend(.seconds(2)) }
            simulation.advance(to: seconds(9.5))
            #expect(
                story.lines == [
                    "2.0 default", "2.0 common",
                    "4.0 common", "5.0 default",  // the mode
                    "6.0 common", "6.0 default",
                    "9.0 common", "9.0 default",  // busy
                ])
        }
    }

    @Test("a delay longer than a period does not pile up: one fire, and then the grid again")
    func noPile() {
        withStory { simulation, story in
            Timer.scheduledTimer(withTimeInterval: .seconds(2), repeats: true) { timer in
                story.tell("fire, missed \(timer.missedFires)")
            }
            simulation.loop.perform(afterDelay: .seconds(5)) { simulation.spend(.seconds(4.5)) }
            simulation.advance(to: seconds(12))
            #expect(
                story.lines == [
                    "2.0 fire, missed 0", "4.0 fire, missed 0", "9.5 fire, missed 1", "10.0 fire, missed 0",
                    "12.0 fire, missed 0",
                ])
        }
    }

    @Test("no mode touches a GCD timer; a busy loop delays the one on main, its own handler the one elsewhere")
    func timerSources() {
        withStory { simulation, story in
            let loop = simulation.loop
            let sources = [("main", DeliveryQueue.main), ("background", .background)].map { name, queue in
                let source = TimerSource(queue: queue, name: name)
                source.schedule(after: .seconds(2), repeating: .seconds(2))
                source.setEventHandler { source in
                    story.tell("\(name), data \(source.data)")
                    if name == "background", simulation.now == seconds(10) { simulation.spend(.seconds(3)) }
                }
                source.activate()
                return source
            }
            simulation.drag(from: seconds(1), until: seconds(3))
            loop.perform(at: seconds(3)) { simulation.spend(.seconds(6)) }
            simulation.advance(to: seconds(14))
            func lines(_ name: String) -> [String] { story.lines.filter { $0.contains(name) } }
            #expect(
                lines("main") == [
                    "2.0 main, data 1", "9.0 main, data 3", "10.0 main, data 1", "12.0 main, data 1",
                    "14.0 main, data 1",
                ])
            #expect(
                lines("background") == [
                    "2.0 background, data 1", "4.0 background, data 1", "6.0 background, data 1",
                    "8.0 background, data 1", "10.0 background, data 1", "13.0 background, data 1",
                    "14.0 background, data 1",
                ])
            for source in sources { source.cancel() }
        }
    }

    @Test("a GCD timer that is cancelled in its handler releases its captures; a weak capture releases them before")
    func captures() {
        final class Owner {
            let source = TimerSource(queue: .main)
            let story: Story
            init(_ story: Story) {
                self.story = story
                source.schedule(after: .seconds(2), repeating: .seconds(2))
            }
            deinit {
                source.cancel()
                story.tell("gone")
            }
        }
        withStory { simulation, story in
            do {
                let owner = Owner(story)
                var count = 0
                owner.source.setEventHandler(on: simulation.loop) { source in
                    story.tell("strong \(count)")
                    count += 1
                    if count > 2 { owner.source.cancel() }
                }
                owner.source.activate()
            }
            simulation.advance(to: seconds(9))
            #expect(story.lines == ["2.0 strong 0", "4.0 strong 1", "6.0 strong 2", "6.0 gone"])
        }
        withStory { simulation, story in
            var owner: Owner? = Owner(story)
            owner?.source.setEventHandler(on: simulation.loop) { [weak owner] _ in
                story.tell(owner == nil ? "nobody" : "weak")
            }
            owner?.source.activate()
            simulation.advance(to: seconds(4.9))
            owner = nil
            simulation.advance(to: seconds(9))
            #expect(story.lines == ["2.0 weak", "4.0 weak", "4.9 gone"])
        }
    }

    @Test("on a secondary thread the run returns when nothing is left in the loop, and the thread ends")
    func secondaryThread() {
        withStory { _, story in
            let thread = LoopThread(name: "secondary") { loop in
                Timer.scheduledTimer(withTimeInterval: .seconds(2), repeats: true) { timer in
                    story.tell("tick")
                    timer.invalidate()
                }
                #expect(loop.run(in: .default) == .finished)
                story.tell("run returned")
            }
            thread.join()
            story.tell("thread ended")
            #expect(story.lines == ["2.0 tick", "2.0 run returned", "2.0 thread ended"])
        }
    }
}
