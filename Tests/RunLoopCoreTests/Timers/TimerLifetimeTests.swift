import RunLoopKit
import RunLoopSimulation
import Synchronization
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopCore

/// A target for timers.
private final class Ticker {
    var ticks = 0
    var infos: [String] = []

    func tick(_ timer: Timer) {
        ticks += 1
        if let info = timer.userInfo as? String { infos.append(info) }
    }
}

@Suite("The life of a timer")
struct TimerLifetimeTests {
    // MARK: invalidate

    @Test("invalidate is immediate and permanent, in every mode (R136)")
    func invalidate() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.addCommonMode("panel")
            let timer = loop.timer(10, every: 10, in: [.default, .tracking, .common]) { _ in log("T") }
            timer.invalidate()
            #expect(!timer.isValid)
            for mode in [RunLoop.Mode.default, .tracking, "panel"] { #expect(loop.isEmpty(mode)) }
            loop.checkInvariants()
            loop.add(timer, forMode: .default)
            #expect(loop.run(in: .default) == .finished)
            #expect(log.text == "")
        }
    }

    @Test("invalidating twice is harmless (R136)")
    func twice() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let timer = loop.timer(10) { _ in }
            timer.invalidationHandler = { log("invalid") }
            timer.invalidate()
            timer.invalidate()
            #expect(log.text == "invalid")
            loop.checkInvariants()
        }
    }

    @Test("a timer may invalidate itself in its callback, which finishes (R137)")
    func insideCallback() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.timer(10, every: 10) { timer in
                log("T<")
                timer.invalidate()
                #expect(!timer.isValid)
                log("T>")
            }
            #expect(loop.run(in: .default) == .finished)
            #expect(log.text == "T< T>")
            loop.checkInvariants()
        }
    }

    @Test("a one-shot that has fired cannot be used again (R142)")
    func usedOneShot() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let timer = loop.timer(10) { _ in log("T") }
            loop.run(in: .default)
            loop.add(timer, forMode: .default)
            timer.fire()
            #expect(loop.isEmpty(.default))
            #expect(log.text == "T")
        }
    }

    // MARK: Ownership

    @Test("the loop keeps a timer until it is invalidated (R110)")
    func loopKeeps() {
        withSimulation { simulation in
            let loop = simulation.loop
            weak var kept: Timer?
            var fires = 0
            kept = loop.timer(10, every: 10) { _ in fires += 1 }
            loop.run(in: .default, until: ms(20))
            #expect(fires == 2)
            #expect(kept != nil)
            kept?.invalidate()
            #expect(kept == nil)
        }
    }

    @Test("the loop keeps a timer until it is removed from its last mode (R110)")
    func loopKeepsUntilRemoved() {
        withSimulation { simulation in
            let loop = simulation.loop
            weak var kept: Timer?
            kept = loop.timer(10, in: [.default, .tracking]) { _ in }
            loop.remove(kept!, forMode: .default)
            #expect(kept != nil)
            loop.remove(kept!, forMode: .tracking)
            #expect(kept == nil)
        }
    }

    @Test("a one-shot and the objects it holds are freed after its fire (R122, R139)")
    func oneShotIsFreed() {
        withSimulation { simulation in
            let loop = simulation.loop
            weak var weakTimer: Timer?
            weak var weakToken: Token?
            do {
                let token = Token()
                weakToken = token
                weakTimer = loop.timer(10) { _ in
                    token.touch()
                    #expect(weakToken != nil)
                }
            }
            loop.keepAlive()
            loop.run(in: .default, until: ms(9))
            #expect(weakTimer != nil)
            #expect(weakToken != nil)
            loop.run(in: .default, until: ms(10))
            #expect(weakToken == nil)
            #expect(weakTimer == nil)
        }
    }

    @Test("invalidate releases the block at once, even if the timer itself is kept (R139)")
    func blockIsReleased() {
        withSimulation { simulation in
            weak var weakToken: Token?
            let timer: Timer
            do {
                let token = Token()
                weakToken = token
                timer = simulation.loop.timer(10, every: 10) { _ in token.touch() }
            }
            #expect(weakToken != nil)
            timer.invalidate()
            #expect(weakToken == nil)
        }
    }

    @Test("invalidate inside the callback releases the block when the callback returns (R139)")
    func blockIsReleasedAfterCallback() {
        withSimulation { simulation in
            let loop = simulation.loop
            weak var weakToken: Token?
            do {
                let token = Token()
                weakToken = token
                loop.timer(10, every: 10) { timer in
                    timer.invalidate()
                    #expect(weakToken != nil)
                    token.touch()
                }
            }
            loop.timer(10) { _ in #expect(weakToken == nil) }
            loop.run(in: .default)
            #expect(weakToken == nil)
        }
    }

    @Test("a timer that was never scheduled releases everything with itself (R140)")
    func neverScheduled() {
        weak var weakTicker: Ticker?
        weak var weakTimer: Timer?
        do {
            let ticker = Ticker()
            let timer = Timer(
                fire: ms(10), interval: .seconds(1), target: ticker, selector: Ticker.tick, userInfo: ticker,
                repeats: true)
            (weakTicker, weakTimer) = (ticker, timer)
        }
        #expect(weakTimer == nil)
        #expect(weakTicker == nil)
    }

    @Test("a target and userInfo are kept until the timer is invalidated (R139, R140)")
    func strongTarget() {
        withSimulation { simulation in
            let loop = simulation.loop
            weak var weakTicker: Ticker?
            weak var weakInfo: Token?
            let timer: Timer
            do {
                let (ticker, info) = (Ticker(), Token())
                (weakTicker, weakInfo) = (ticker, info)
                timer = Timer(
                    fire: ms(10), interval: .milliseconds(10), target: ticker, selector: Ticker.tick, userInfo: info,
                    repeats: true)
                loop.add(timer, forMode: .default)
            }
            loop.run(in: .default, until: ms(30))
            #expect(weakTicker?.ticks == 3)
            #expect(timer.userInfo as? Token === weakInfo)
            timer.invalidate()
            #expect(weakTicker == nil)
            #expect(weakInfo == nil)
            #expect(timer.userInfo == nil)
        }
    }

    @Test("a one-shot's target is released after its fire")
    func oneShotTarget() {
        withSimulation { simulation in
            let loop = simulation.loop
            weak var weakTicker: Ticker?
            do {
                let ticker = Ticker()
                weakTicker = ticker
                Timer.scheduledTimer(
                    timeInterval: .milliseconds(10), target: ticker, selector: Ticker.tick, userInfo: "info",
                    repeats: false)
            }
            loop.timer(9) { _ in #expect(weakTicker != nil) }
            loop.run(in: .default)
            #expect(weakTicker == nil)
            #expect(loop.now == ms(10))
        }
    }

    @Test("a weak target is not kept; when it is gone the timer invalidates itself instead of firing")
    func weakTarget() {
        withSimulation { simulation in
            let loop = simulation.loop
            var ticker: Ticker? = Ticker()
            weak let weakTicker = ticker
            let timer = Timer.scheduledTimer(
                timeInterval: .milliseconds(10), weakTarget: ticker!, selector: Ticker.tick, userInfo: "info",
                repeats: true)
            loop.run(in: .default, until: ms(20))
            #expect(ticker?.ticks == 2)
            #expect(ticker?.infos == ["info", "info"])
            ticker = nil
            #expect(weakTicker == nil)
            #expect(timer.isValid)
            #expect(loop.run(in: .default) == .finished)
            #expect(loop.now == ms(30))
            #expect(!timer.isValid)
        }
    }

    @Test("a block timer carries no userInfo; a target's timer carries the userInfo it was given (R104)")
    func userInfo() {
        let ticker = Ticker()
        #expect(Timer(fire: ms(0), interval: .zero, repeats: false) { _ in }.userInfo == nil)
        let timer = Timer(
            fire: ms(0), interval: .zero, target: ticker, selector: Ticker.tick, userInfo: 42, repeats: false)
        #expect(timer.userInfo as? Int == 42)
    }

    @Test("the invalidation handler is called once, before the timer releases the objects it holds")
    func invalidationHandler() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let timer: Timer
            do {
                let token = Token { log("released") }
                timer = loop.timer(10) { _ in
                    token.touch()
                    log("fired")
                }
            }
            timer.invalidationHandler = { [unowned timer] in
                #expect(!timer.isValid)
                log("invalidated")
            }
            loop.run(in: .default)
            #expect(log.text == "fired invalidated released")
            #expect(timer.invalidationHandler == nil)
            timer.invalidationHandler = { log("never") }
            timer.invalidate()
            #expect(log.text == "fired invalidated released")
        }
    }

    @Test("a deinit that a timer's end sets off may use the loop")
    func deinitUsesLoop() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            do {
                let smuggled = Smuggled(loop)
                let token = Token { smuggled.value.timer(20) { _ in log("second") } }
                loop.timer(10) { _ in
                    token.touch()
                    log("first")
                }
            }
            #expect(loop.run(in: .default) == .finished)
            #expect(log.text == "first second")
            loop.checkInvariants()
        }
    }

    @Test("the end of the loop releases its timers without calling them (R6)")
    func endOfLoop() {
        let log = Log<String>()
        weak var weakTimer: Timer?
        weak var weakToken: Token?
        withSimulation { simulation in
            let token = Token()
            weakToken = token
            weakTimer = simulation.loop.timer(0, every: 10) { _ in
                token.touch()
                log("T")
            }
        }
        #expect(weakTimer == nil)
        #expect(weakToken == nil)
        #expect(log.text == "")
    }

    // MARK: remote

    @Test("remote.invalidate from another thread wakes the loop, which releases the target on its own thread (R141)")
    func remoteInvalidate() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            weak var weakToken: Token?
            let remote: Timer.Remote
            do {
                let smuggled = Smuggled(loop)
                let token = Token { log("released at \(smuggled.value.now.word)") }
                weakToken = token
                remote = loop.timer(1000) { _ in token.touch() }.remote
            }
            let thread = LoopThread(name: "other") { other in
                other.perform(at: ms(20)) { remote.invalidate() }
            }
            #expect(!remote.isInvalidated)
            #expect(loop.run(in: .default, until: ms(2000)) == .finished)
            #expect(loop.now == ms(20))
            #expect(log.entries == ["released at 20"])
            #expect(weakToken == nil)
            #expect(remote.isInvalidated)
            thread.join()
        }
    }

    @Test("no fire begins once remote.invalidate has returned, also not in a pass under way (R141)")
    func remoteInvalidateInPass() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            var victim: Timer?
            loop.timer(10) { _ in
                log("A")
                simulation.spend(.milliseconds(20))
                #expect(victim?.isValid == false)
            }
            victim = loop.timer(10, every: 10) { _ in log("victim") }
            let remote = victim!.remote
            let thread = LoopThread(name: "other") { other in
                other.perform(at: ms(15)) { remote.invalidate() }
            }
            #expect(loop.run(in: .default) == .finished)
            #expect(log.text == "A")
            thread.join()
        }
    }

    @Test("remote.invalidate works while the loop runs in a mode that the timer is not in")
    func remoteInvalidateInOtherMode() {
        withSimulation { simulation in
            let loop = simulation.loop
            weak var weakTimer: Timer?
            let timer = loop.timer(1000) { _ in }
            weakTimer = timer
            let remote = timer.remote
            loop.keepAlive(in: .tracking)
            let thread = LoopThread(name: "other") { other in
                other.perform(at: ms(20)) { remote.invalidate() }
            }
            loop.run(in: .tracking, until: ms(50))
            #expect(weakTimer?.isValid == false)
            #expect(loop.isEmpty(.default))
            loop.checkInvariants()
            thread.join()
        }
    }

    @Test("remote.invalidate of a timer in no loop keeps it from ever being scheduled")
    func remoteInvalidateUnscheduled() {
        withSimulation { simulation in
            let timer = Timer(fire: ms(10), interval: .zero, repeats: false) { _ in }
            timer.remote.invalidate()
            #expect(!timer.isValid)
            simulation.loop.add(timer, forMode: .default)
            #expect(simulation.loop.isEmpty(.default))
        }
    }
}
