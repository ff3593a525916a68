import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopCore

@Suite("The life of a display link")
struct DisplayLinkLifetimeTests {
    @Test("a link keeps its target, and the loop keeps the link, until it is invalidated (R192, R195)")
    func strongTarget() {
        withSimulation { simulation in
            let loop = simulation.loop
            weak var weakStepper: Stepper?
            weak var weakLink: DisplayLink?
            do {
                let stepper = Stepper()
                weakStepper = stepper
                weakLink = DisplayLink.scheduledDisplayLink(target: stepper, selector: Stepper.step)
            }
            loop.run(in: .default, until: frame(3))
            #expect(weakStepper?.steps == 3)
            weakLink?.invalidate()
            #expect(weakLink == nil)
            #expect(weakStepper == nil)
            #expect(loop.isEmpty(.default))
        }
    }

    @Test("a link that was never added releases everything with itself")
    func neverAdded() {
        weak var weakStepper: Stepper?
        weak var weakLink: DisplayLink?
        do {
            let stepper = Stepper()
            let link = DisplayLink(target: stepper, selector: Stepper.step)
            (weakStepper, weakLink) = (stepper, link)
        }
        #expect(weakLink == nil)
        #expect(weakStepper == nil)
    }

    @Test("a link removed from its last mode is released, and its target with it if nothing else holds it (R194)")
    func removed() {
        withSimulation { simulation in
            let loop = simulation.loop
            weak var weakStepper: Stepper?
            weak var weakLink: DisplayLink?
            do {
                let stepper = Stepper()
                weakStepper = stepper
                weakLink = DisplayLink.scheduledDisplayLink(target: stepper, selector: Stepper.step)
            }
            loop.run(in: .default, until: frame(1))
            weakLink?.remove(from: loop, forMode: .common)
            #expect(weakLink == nil)
            #expect(weakStepper == nil)
        }
    }

    @Test("invalidate takes a link out of all modes, is permanent, and harmless when repeated (R195)")
    func invalidate() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.addCommonMode("panel")
            let recorded = RecordedLink(loop, in: [.default, .tracking, .common])
            loop.run(in: "panel", until: frame(1))
            recorded.link.invalidate()
            recorded.link.invalidate()
            #expect(!recorded.link.isValid)
            for mode in [RunLoop.Mode.default, .tracking, "panel"] { #expect(loop.isEmpty(mode)) }
            var ignored: [String] = []
            loop.trace = { if case .ignored(let what) = $0 { ignored.append(what) } }
            recorded.link.add(to: loop, forMode: .default)
            #expect(ignored == ["\(recorded.link!) was added, but it is invalid; make a new one"])
            recorded.link.isPaused = true
            recorded.link.isPaused = false
            recorded.link.frameInterval = 2
            #expect(loop.run(in: .default) == .finished)
            #expect(recorded.frames == [1])
            loop.checkInvariants()
        }
    }

    @Test("a link invalidated in the same pass is not called any more (R195)")
    func invalidatedInPass() {
        withSimulation { simulation in
            let loop = simulation.loop
            var second: RecordedLink?
            let first = RecordedLink(loop) { _ in second?.link.invalidate() }
            second = RecordedLink(loop)
            loop.run(in: .default, until: frame(2))
            #expect(first.frames == [1, 2])
            #expect(second?.frames == [])
        }
    }

    @Test("a link invalidated inside its call releases its block when the call returns (R195)")
    func invalidatedInside() {
        withSimulation { simulation in
            let loop = simulation.loop
            weak var weakToken: Token?
            do {
                let token = Token()
                weakToken = token
                DisplayLink.scheduledDisplayLink { link in
                    link.invalidate()
                    #expect(weakToken != nil)
                    token.touch()
                }
            }
            loop.run(in: .default, until: ns(16_666_665))
            #expect(weakToken != nil)
            #expect(loop.run(in: .default) == .finished)
            #expect(weakToken == nil)
        }
    }

    @Test("a weak target is not kept; when it is gone the link invalidates itself")
    func weakTarget() {
        withSimulation { simulation in
            let loop = simulation.loop
            var stepper: Stepper? = Stepper()
            weak let weakStepper = stepper
            let link = DisplayLink.scheduledDisplayLink(weakTarget: stepper!, selector: Stepper.step)
            loop.run(in: .default, until: frame(2))
            #expect(stepper?.steps == 2)
            stepper = nil
            #expect(weakStepper == nil)
            #expect(link.isValid)
            #expect(loop.run(in: .default) == .finished)
            #expect(loop.now == frame(3))
            #expect(!link.isValid)
        }
    }

    @Test("the invalidation handler is called once, before the link releases its target")
    func invalidationHandler() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let link: DisplayLink
            do { link = DisplayLink(target: Stepper { log("released") }, selector: Stepper.step) }
            link.add(to: loop, forMode: .default)
            link.invalidationHandler = { [unowned link] in
                #expect(!link.isValid)
                log("invalidated")
            }
            link.invalidate()
            #expect(log.text == "invalidated released")
            #expect(link.invalidationHandler == nil)
            link.invalidationHandler = { log("never") }
            #expect(link.invalidationHandler == nil)
            link.invalidate()
            #expect(log.text == "invalidated released")
        }
    }

    @Test("a deinit that a link's end sets off may use the loop and the link")
    func deinitUsesLoop() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            var link: DisplayLink?
            do {
                let stepper = Stepper {
                    link?.invalidate()
                    DisplayLink.scheduledDisplayLink { second in
                        log("second")
                        second.invalidate()
                    }
                }
                stepper.onStep = { $0.invalidate() }
                link = DisplayLink.scheduledDisplayLink(target: stepper, selector: Stepper.step)
            }
            #expect(loop.run(in: .default) == .finished)
            #expect(log.text == "second")
            #expect(link?.isValid == false)
            loop.checkInvariants()
        }
    }

    @Test("the end of the loop invalidates its links without calling them, also those kept elsewhere (R6)")
    func endOfLoop() {
        weak var weakStepper: Stepper?
        var calls = 0
        let kept = DisplayLink { _ in calls += 1 }
        withSimulation { simulation in
            let stepper = Stepper()
            weakStepper = stepper
            DisplayLink.scheduledDisplayLink(target: stepper, selector: Stepper.step)
            kept.add(to: simulation.loop, forMode: .default)
            simulation.loop.run(in: .default, until: frame(3))
        }
        #expect(weakStepper == nil)
        #expect(calls == 3)
        #expect(!kept.isValid)
    }

    // MARK: remote

    @Test("remote.invalidate from another thread wakes the loop, which releases the target on its own thread (R195)")
    func remoteInvalidate() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let remote: DisplayLink.Remote
            do {
                let stepper = Stepper { log("released at \(loop.now.word)") }
                let link = DisplayLink.scheduledDisplayLink(target: stepper, selector: Stepper.step)
                remote = link.remote
                link.isPaused = true
            }
            #expect(!remote.isInvalidated)
            let thread = LoopThread(name: "other") { other in
                other.perform(at: ms(15)) { remote.invalidate() }
            }
            #expect(loop.run(in: .default) == .finished)
            #expect(log.text == "released at 15")
            #expect(remote.isInvalidated)
            remote.invalidate()
            thread.join()
        }
    }

    @Test("remote.invalidate keeps a due call from being made, and a call under way from being the first of more")
    func remoteInvalidateInPass() {
        withSimulation { simulation in
            let loop = simulation.loop
            let late = RecordedLink(loop)
            let remote = late.link.remote
            let inside = RecordedLink(loop) { $0.remote.invalidate() }
            loop.timer(10) { _ in
                simulation.spend(.milliseconds(10))
                remote.invalidate()
            }
            #expect(loop.run(in: .default) == .finished)
            #expect(late.frames == [])
            #expect(inside.frames == [1])
            #expect(!late.link.isValid)
            #expect(!inside.link.isValid)
        }
    }

    @Test("remote.invalidate of a link in no loop keeps it from ever being added; invalidate tells the remote")
    func remoteInvalidateUnscheduled() {
        withSimulation { simulation in
            let link = DisplayLink { _ in }
            link.remote.invalidate()
            #expect(!link.isValid)
            link.add(to: simulation.loop, forMode: .default)
            #expect(simulation.loop.isEmpty(.default))
            let other = DisplayLink { _ in }
            let remote = other.remote
            other.invalidate()
            #expect(remote.isInvalidated)
        }
    }
}
