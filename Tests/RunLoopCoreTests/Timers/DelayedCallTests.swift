import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@testable import RunLoopCore

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

    @Test("target and argument are let go when the call is cancelled (R157)")
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

    @Test("a block and what it holds go with the call")
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

    @Test("the end of the loop lets pending calls and their targets go without making them (R6)")
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

    @Test("a call is made and cancelled in the same time, however many of its target are pending")
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
