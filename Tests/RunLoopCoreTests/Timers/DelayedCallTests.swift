import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopCore

/// A target for delayed calls.
private final class Player {
    let log: Log<String>

    init(_ log: Log<String>) {
        self.log = log
    }

    func skip() {
        log("skip")
    }

    func play(_ title: String) {
        log("play:\(title)")
    }
}

@Suite("Delayed calls")
struct DelayedCallTests {
    @Test("a call is made once, after its delay (R155)")
    func afterDelay() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            simulation.spend(.milliseconds(5))
            let call = loop.perform(afterDelay: .milliseconds(20)) { log(loop.now.word) }
            #expect(call.isPending)
            #expect(loop.run(in: .default) == .finished)
            #expect(log.text == "25")
            #expect(!call.isPending)
        }
    }

    @Test("a delay of zero or less is never synchronous (R155)")
    func zeroDelay() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.perform(afterDelay: .zero) { log("zero") }
            loop.perform(afterDelay: .seconds(-1)) { log("negative") }
            #expect(log.text == "")
            loop.run(in: .default)
            #expect(log.text == "zero negative")
            #expect(loop.now == ms(0))
        }
    }

    @Test("a call with no delay that is asked for by a timer is made in the next pass (R155)")
    func zeroDelayInPass() {
        withObservedLoop { _, loop, log in
            loop.timer(10) { _ in
                log("T")
                loop.perform(afterDelay: .zero) { log("C") }
            }
            loop.run(in: .default)
            #expect(log.text == "E BT BW AW T BT C X")
        }
    }

    @Test("a call at a date is not made before it, and at once if it has passed")
    func atDate() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            simulation.spend(.milliseconds(50))
            loop.perform(at: ms(80)) { log("future \(loop.now.word)") }
            loop.perform(at: ms(10)) { log("past \(loop.now.word)") }
            loop.run(in: .default)
            #expect(log.entries == ["past 50", "future 80"])
        }
    }

    @Test("with no modes nothing is scheduled (R156)")
    func noModes() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let call = loop.perform(afterDelay: .zero, inModes: []) { log("C") }
            #expect(!call.isPending)
            #expect(loop.isEmpty(.default))
            let player = Player(log)
            #expect(!loop.perform(Player.skip, target: player, afterDelay: .zero, inModes: []).isPending)
            loop.timer(10) { _ in }
            loop.run(in: .default)
            #expect(log.text == "")
        }
    }

    @Test("target and argument are kept until the call has been made (R157)")
    func keptUntilMade() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            weak var kept: Player?
            do {
                let player = Player(log)
                kept = player
                loop.perform(Player.play, target: player, with: "first", afterDelay: .milliseconds(10))
            }
            loop.timer(5) { _ in #expect(kept != nil) }
            loop.run(in: .default)
            #expect(log.text == "play:first")
            #expect(kept == nil)
        }
    }

    @Test("target and argument are released when the call is cancelled (R157)")
    func keptUntilCancelled() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            weak var kept: Player?
            do {
                let player = Player(log)
                kept = player
                loop.perform(Player.skip, target: player, named: "skip", afterDelay: .milliseconds(10))
                loop.cancelPreviousPerformRequests(withTarget: player)
            }
            #expect(kept == nil)
            #expect(loop.isEmpty(.default))
            loop.checkInvariants()
        }
    }

    @Test("a token that is kept does not keep the target of a call that was made or cancelled (R157)")
    func tokenDoesNotKeep() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            weak var made: Player?
            weak var cancelled: Player?
            let tokens: [DelayedCall]
            do {
                let (first, second) = (Player(log), Player(log))
                (made, cancelled) = (first, second)
                tokens = [
                    loop.perform(Player.skip, target: first, afterDelay: .milliseconds(10)),
                    loop.perform(Player.play, target: second, with: "title", afterDelay: .milliseconds(10)),
                ]
            }
            tokens[1].cancel()
            #expect(cancelled == nil)
            loop.run(in: .default)
            #expect(log.text == "skip")
            #expect(made == nil)
            #expect(tokens.allSatisfy { !$0.isPending })
        }
    }

    @Test("a block and the objects it holds are released with the call")
    func blockIsLetGo() {
        withSimulation { simulation in
            let loop = simulation.loop
            weak var kept: Token?
            let call: DelayedCall
            do {
                let token = Token()
                kept = token
                call = loop.perform(afterDelay: .milliseconds(10)) { token.touch() }
            }
            #expect(kept != nil)
            call.cancel()
            #expect(kept == nil)
        }
    }

    @Test("a call is made only while one of its modes runs (R158)")
    func modes() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.perform(afterDelay: .milliseconds(10)) { log("default \(loop.now.word)") }
            loop.perform(afterDelay: .milliseconds(10), inModes: [.default, .tracking]) { log("both \(loop.now.word)") }
            loop.keepAlive(in: .tracking)
            loop.run(in: .tracking, until: ms(30))
            loop.run(in: .default)
            #expect(log.entries == ["both 10", "default 30"])
        }
    }

    @Test("calls with equal delays are made in the order in which they were asked for (R159)")
    func order() {
        withSimulation { simulation in
            let loop = simulation.loop
            var made: [Int] = []
            for index in 0..<50 { loop.perform(afterDelay: .milliseconds(10)) { made.append(index) } }
            loop.run(in: .default)
            #expect(made == Array(0..<50))
        }
    }

    @Test("all pending calls of a target are cancelled, in every mode, and no others (R160)")
    func cancelAll() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let (first, second) = (Player(log), Player(log))
            loop.perform(Player.skip, target: first, afterDelay: .milliseconds(10))
            loop.perform(Player.play, target: first, with: "a", named: "play", afterDelay: .milliseconds(10))
            loop.perform(Player.skip, target: first, afterDelay: .milliseconds(10), inModes: .tracking)
            loop.perform(Player.play, target: second, with: "b", afterDelay: .milliseconds(10))
            loop.cancelPreviousPerformRequests(withTarget: first)
            #expect(loop.isEmpty(.tracking))
            loop.run(in: .default)
            #expect(log.text == "play:b")
        }
    }

    @Test("cancelled by name, a call must have been given the name and an equal argument (R160)")
    func cancelByName() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let player = Player(log)
            for title in ["a", "b", "a"] {
                loop.perform(Player.play, target: player, with: title, named: "play", afterDelay: .milliseconds(10))
            }
            loop.perform(Player.play, target: player, with: "a", named: "other", afterDelay: .milliseconds(10))
            loop.perform(Player.skip, target: player, named: "play", afterDelay: .milliseconds(10))
            loop.perform(Player.play, target: player, with: "a", afterDelay: .milliseconds(10))
            loop.cancelPreviousPerformRequests(withTarget: player, named: "play", argument: "a")
            loop.run(in: .default)
            #expect(log.text == "play:b play:a skip play:a")
        }
    }

    @Test("no argument matches only calls without one (R160)")
    func cancelWithoutArgument() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let player = Player(log)
            loop.perform(Player.play, target: player, with: "a", named: "play", afterDelay: .milliseconds(10))
            loop.perform(Player.skip, target: player, named: "play", afterDelay: .milliseconds(10))
            loop.cancelPreviousPerformRequests(withTarget: player, named: "play")
            loop.run(in: .default)
            #expect(log.text == "play:a")
        }
    }

    @Test("only the loop that is asked cancels (R160)")
    func cancelInOneLoop() {
        withSimulation { outer in
            let log = Log<String>()
            let player = Player(log)
            outer.loop.perform(Player.skip, target: player, afterDelay: .milliseconds(10))
            withSimulation { $0.loop.cancelPreviousPerformRequests(withTarget: player) }
            outer.loop.run(in: .default)
            #expect(log.text == "skip")
        }
    }

    @Test("cancelling from inside the call is harmless, and cancels the calls still pending (R161)")
    func cancelInside() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let player = Player(log)
            var call: DelayedCall?
            call = loop.perform(afterDelay: .milliseconds(10)) {
                log("call")
                call?.cancel()
                loop.cancelPreviousPerformRequests(withTarget: player)
            }
            loop.perform(Player.skip, target: player, afterDelay: .milliseconds(10))
            #expect(loop.run(in: .default) == .finished)
            #expect(log.text == "call")
            #expect(loop.now == ms(10))
            loop.checkInvariants()
        }
    }

    @Test("a target may ask for its next call inside the one being made")
    func chain() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            func step() {
                log(loop.now.word)
                if loop.now < ms(30) { loop.perform(afterDelay: .milliseconds(10), step) }
            }
            loop.perform(afterDelay: .milliseconds(10), step)
            #expect(loop.run(in: .default) == .finished)
            #expect(log.text == "10 20 30")
        }
    }

    @Test("delayed calls are timers, not sources: they do not end run(mode:before:) (R162)")
    func notSources() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.keepAlive()
            loop.perform(afterDelay: .milliseconds(10)) {}
            loop.perform(afterDelay: .milliseconds(20)) {}
            #expect(loop.run(mode: .default, before: ms(100)))
            #expect(loop.now == ms(100))
            #expect(loop.statistics.fires == 2)
        }
    }

    @Test("the end of the loop releases pending calls and their targets without making them (R6)")
    func endOfLoop() {
        let log = Log<String>()
        weak var kept: Player?
        withSimulation { simulation in
            let player = Player(log)
            kept = player
            simulation.loop.perform(Player.skip, target: player, afterDelay: .zero)
        }
        #expect(kept == nil)
        #expect(log.text == "")
    }

    @Test("a call is moved to a later or an earlier date, and then comes after items already due there")
    func rearm() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let later = loop.perform(at: ms(10)) { log("later \(loop.now.word)") }
            let earlier = loop.perform(at: ms(50)) { log("earlier \(loop.now.word)") }
            let same = loop.perform(at: ms(20)) { log("same \(loop.now.word)") }
            loop.timer(20) { _ in log("T") }
            loop.timer(30) { _ in log("T") }
            #expect(later.rearm(at: ms(30)))
            #expect(earlier.rearm(at: ms(20)))
            #expect(same.rearm(at: ms(20)))
            loop.checkInvariants()
            loop.run(in: .default)
            #expect(log.text == "T earlier 20 same 20 T later 30")
        }
    }

    @Test("a call cannot be moved while it is made, or once it was made or cancelled")
    func rearmTooLate() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            var made: DelayedCall?
            made = loop.perform(at: ms(10)) {
                log("made")
                #expect(made?.isPending == false)
                #expect(made?.rearm(at: ms(20)) == false)
            }
            let cancelled = loop.perform(at: ms(10)) { log("cancelled") }
            cancelled.cancel()
            #expect(!cancelled.rearm(at: ms(20)))
            loop.run(in: .default)
            #expect(made?.rearm(at: ms(20)) == false)
            #expect(loop.run(in: .default) == .finished)
            #expect(log.text == "made")
            #expect(loop.now == ms(10))
        }
    }

    @Test("a call that is being made keeps its mode from being empty")
    func keepsModeAlive() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.perform(at: ms(10)) { log("\(loop.run(in: .default, until: ms(20)))") }
            loop.run(in: .default)
            #expect(log.entries == ["timedOut"])
            #expect(loop.isEmpty(.default))
        }
    }

    @Test("a call that is due and joins the running mode in a pass waits for the next one")
    func becomesCommon() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.perform(at: ms(10), inModes: .common) { log("common \(loop.statistics.passes)") }
            loop.perform(at: ms(10), inModes: .tracking) {
                log("tracking \(loop.statistics.passes)")
                loop.addCommonMode(.tracking)
            }
            loop.run(in: .tracking, until: ms(20))
            #expect(log.text == "tracking 1 common 2")
            loop.checkInvariants()
        }
    }

    @Test("a call cancelled by an earlier one of the same pass is not made, and its block goes at once")
    func cancelledInPass() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            weak var kept: Token?
            var second: DelayedCall?
            loop.perform(at: ms(10)) {
                second?.cancel()
                log("\(kept == nil)")
            }
            do {
                let token = Token()
                kept = token
                second = loop.perform(at: ms(10)) {
                    token.touch()
                    log("made")
                }
            }
            loop.run(in: .default)
            #expect(log.entries == ["true"])
        }
    }

    @Test("a token of a loop that has ended is harmless, also where another loop has calls")
    func outlivesLoop() {
        let old = withSimulation { $0.loop.perform(afterDelay: .seconds(1)) {} }
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let new = loop.perform(afterDelay: .seconds(1)) { log("made") }
            #expect(!old.isPending)
            old.cancel()
            #expect(!old.rearm(at: ms(0)))
            #expect(new.isPending)
            #expect(new != old)
            loop.run(in: .default)
            #expect(log.text == "made")
        }
        #expect(!old.isPending)
    }

    @Test("a token is used while another loop of the thread runs")
    func withinAnotherLoop() {
        withSimulation { outer in
            let log = Log<String>()
            let (kept, cancelled) = (
                outer.loop.perform(at: ms(10)) { log("kept") }, outer.loop.perform(at: ms(10)) { log("cancelled") }
            )
            withSimulation { inner in
                inner.loop.perform(at: ms(10)) { log("inner") }
                #expect(kept.isPending)
                cancelled.cancel()
                #expect(kept.rearm(at: ms(20)))
                inner.loop.run(in: .default)
            }
            outer.loop.run(in: .default)
            #expect(log.text == "inner kept")
            #expect(outer.now == ms(20))
        }
    }

    @Test("on another thread than its loop's, a token traps")
    func onAnotherThread() async {
        await #expect(processExitsWith: .failure) {
            DelayedCallTests.cancelElsewhere()
        }
    }

    private static func cancelElsewhere() {
        nonisolated(unsafe) let call = RunLoop.current.perform(afterDelay: .seconds(1)) {}
        onThread { call.cancel() }
    }

    @Test("a call whose loop ends while it is made is released with the loop")
    func loopEndsInCall() {
        let log = Log<String>()
        withSimulation { simulation in
            let loop = simulation.loop
            loop.perform(at: ms(10)) {
                loop.tearDown()
                log("ended")
            }
            loop.run(in: .default)
        }
        #expect(log.text == "ended")
    }

    @Test("traces and dumps show a delayed call with its place, its date and its label")
    func reports() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.trace = { log("\($0)") }
            let line: UInt32 = #line + 1
            loop.perform(at: ms(10), inModes: .common) { log("\(loop.dump().items.map(\.kind))") }
            loop.perform(
                at: ms(20), inModes: .tracking, label: CallLabel("idle timeout"), origin: RunLoop.Origin()
            ) {}
            let items = loop.dump().items
            #expect(items.map(\.kind) == [.delayedCall, .delayedCall])
            #expect(items.map(\.name) == [nil, "idle timeout"])
            #expect(items.map(\.deadline) == [ms(10), ms(20)])
            #expect(items[0].origin.line == line)
            #expect(items[0].isCommon && items[0].modes == [.default])
            loop.run(in: .default)
            #expect(
                log.entries == [
                    "run default", "call due 0.010000000", "[delayed call, delayed call]",
                    "end default finished",
                    "ignored: the run in default has finished, but delayed call \"idle timeout\" (\(items[1].origin)) is "
                        + "scheduled in tracking, where the loop has not run while it was traced; run it there too, or "
                        + "use a mode in which it runs",
                ])
        }
    }

    @Test("calls are made and cancelled in constant time, however many of their target are pending")
    func manyOfOneTarget() {
        withSimulation { simulation in
            let loop = simulation.loop
            let growth = growth(from: 250, to: 8000) { count in
                let player = Player(Log<String>())
                let calls = (0..<count).map { _ in
                    loop.perform(Player.skip, target: player, afterDelay: .seconds(1))
                }
                for call in calls { call.cancel() }
            }
            #expect(growth < 8, "32 would be a look at all of them")
        }
    }
}
