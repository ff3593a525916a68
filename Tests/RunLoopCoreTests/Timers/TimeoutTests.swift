import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopCore

/// A timeout that calls a closure.
private final class Session: Timeout {
    private let body: (Session) -> Void
    private let token: Token?

    init(
        keeping token: Token? = nil, file: StaticString = #fileID, line: UInt32 = #line,
        _ body: @escaping (Session) -> Void = { _ in }
    ) {
        self.body = body
        self.token = token
        super.init(file: file, line: line)
    }

    override func timeoutExpired() { body(self) }
}

@Suite("Timeouts")
struct TimeoutTests {
    @Test("a timeout expires once, at its date, and is out of its loop when its call has returned")
    func once() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let session = Session { log("\(loop.now.word) \($0.fireDate == ms(20))") }
            loop.add(session, at: ms(20))
            #expect(session.fireDate == ms(20))
            #expect(loop.contains(session, forMode: .default))
            #expect(loop.run(in: .default) == .finished)
            #expect(log.text == "20 true")
            #expect(session.fireDate == nil)
            #expect(session.isValid)
            #expect(!session.rearm(at: ms(30)))
            loop.add(session, at: ms(30))
            loop.run(in: .default)
            #expect(log.text == "20 true 30 false")
        }
    }

    @Test("a Timeout that is not subclassed expires without effect")
    func bare() {
        withSimulation { simulation in
            let timeout = Timeout()
            simulation.loop.add(timeout, at: ms(5))
            #expect(simulation.loop.run(in: .default) == .finished)
            #expect(simulation.now == ms(5))
            #expect(timeout.fireDate == nil)
        }
    }

    @Test("a timeout expires only while one of its modes runs, and is not late in any other")
    func modes() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.addCommonMode(.tracking)
            let sessions = ["default", "common", "both"].map { name in Session { _ in log("\(name) \(loop.now.word)") }
            }
            loop.add(sessions[0], at: ms(10))
            loop.add(sessions[1], at: ms(10), forMode: .common)
            loop.add(sessions[2], at: ms(10), forMode: [.default, .tracking])
            loop.keepAlive(in: .tracking)
            loop.run(in: .tracking, until: ms(30))
            loop.run(in: .default)
            #expect(log.entries == ["common 10", "both 10", "default 30"])
        }
    }

    @Test("with no modes nothing is scheduled")
    func noModes() {
        withSimulation { simulation in
            let loop = simulation.loop
            let session = Session()
            loop.add(session, at: ms(10), forMode: [])
            #expect(session.fireDate == nil)
            loop.add(session, at: ms(10))
            loop.remove(session, forMode: .default)
            #expect(session.fireDate == nil)
            loop.add(session, at: ms(10), forMode: [])
            #expect(session.fireDate == nil)
            #expect(loop.isEmpty(.default))
            loop.checkInvariants()
        }
    }

    @Test("equal dates expire in the order of adding and moving, among timers and calls; past dates in the next pass")
    func order() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let sessions = (0..<3).map { number in Session { _ in log("\(number)") } }
            let past = Session { _ in log("past") }
            loop.add(sessions[0], at: ms(10))
            loop.timer(10) { _ in
                log("timer")
                loop.add(past, at: ms(3))
            }
            loop.add(sessions[1], at: ms(5))
            loop.perform(at: ms(10)) { log("call") }
            loop.add(sessions[2], at: ms(10))
            #expect(sessions[0].rearm(at: ms(10)))
            #expect(sessions[1].rearm(at: ms(10)))
            loop.run(in: .default)
            #expect(log.text == "timer call 2 0 1 past")
        }
    }

    @Test("a timeout that is added again moves, and joins the modes")
    func addedAgain() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let session = Session { _ in log(loop.now.word) }
            loop.add(session, at: ms(10))
            loop.add(session, at: ms(20), forMode: .tracking)
            #expect(loop.contains(session, forMode: [.default, .tracking]))
            loop.add(session, at: ms(15))
            loop.run(in: .tracking)
            #expect(log.text == "15")
            #expect(loop.isEmpty(.default))
        }
    }

    @Test("a timeout that is cancelled in a pass that has begun does not expire")
    func cancelledInPass() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let second = Session { _ in log("second") }
            let first = Session { _ in
                log("first")
                second.cancel()
                second.cancel()
            }
            loop.add(first, at: ms(10))
            loop.add(second, at: ms(10))
            #expect(loop.run(in: .default) == .finished)
            #expect(log.text == "first")
        }
    }

    @Test("a timeout can be moved, added, cancelled, and moved and cancelled in its own call")
    func inOwnCall() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let session = Session { session in
                log(loop.now.word)
                switch loop.now {
                case ms(10): session.rearm(at: ms(20))
                case ms(20): loop.add(session, at: ms(30), forMode: .tracking)
                case ms(30):
                    session.cancel()
                    loop.add(session, at: ms(40))
                default:
                    session.rearm(at: ms(50))
                    session.cancel()
                }
                loop.checkInvariants()
            }
            loop.add(session, at: ms(10))
            loop.run(in: .default)
            #expect(log.text == "10 20 30 40")
            #expect(session.fireDate == nil)
            #expect(loop.isEmpty(.tracking))
        }
    }

    @Test("a timeout is not called again before its call has returned, not even in a nested run")
    func nested() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let other = Session { _ in log("other \(loop.now.word)") }
            let session = Session { session in
                log("begin \(loop.now.word)")
                if loop.now == ms(10) {
                    session.rearm(at: ms(15))
                    loop.run(in: .default, until: ms(30))
                }
                log("end")
            }
            loop.add(session, at: ms(10))
            loop.add(other, at: ms(20))
            loop.run(in: .default)
            #expect(log.entries == ["begin 10", "other 20", "end", "begin 30", "end"])
        }
    }

    @Test("a timeout moves to another loop of its thread in its own call, and is cancelled there from elsewhere")
    func toAnotherLoop() {
        withSimulation { outer in
            let (loop, log) = (outer.loop, Log<String>())
            let sessions = (0..<2).map { number in
                Session { session in
                    log("\(number) \(loop.now.word)")
                    guard loop.now == ms(0) else { return }
                    session.cancel()
                    loop.add(session, at: ms(5 + Int64(number)))
                }
            }
            withSimulation { inner in
                for session in sessions { inner.loop.add(session, at: ms(1)) }
                inner.loop.run(in: .default)
                inner.loop.checkInvariants()
                sessions[1].cancel()
                loop.checkInvariants()
            }
            loop.run(in: .default)
            #expect(log.text == "0 0 1 0 0 5")
        }
    }

    // MARK: Ownership

    @Test("the loop does not keep a timeout, which is released with its last reference and does not expire")
    func released() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            var session: Session? = Session(keeping: Token { log("gone") }) { _ in log("expired") }
            loop.add(session!, at: ms(10))
            session = nil
            #expect(log.text == "gone")
            #expect(loop.isEmpty(.default))
            loop.checkInvariants()
            #expect(loop.run(in: .default) == .finished)
            #expect(log.text == "gone")
        }
    }

    @Test("a timeout that is released in its own call is freed when the call has returned", arguments: [false, true])
    func releasedInOwnCall(isMoved: Bool) {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            var session: Session?
            session = Session(keeping: Token { log("gone") }) { own in
                if isMoved { own.rearm(at: ms(20)) }
                session = nil
                log("expired")
            }
            loop.add(session!, at: ms(10))
            #expect(loop.run(in: .default) == .finished)
            #expect(log.text == "expired gone")
            loop.checkInvariants()
        }
    }

    @Test("a timeout that another releases in the same pass does not expire, even if the pass has set it aside")
    func releasedInPass() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            var released: [Session] = [Session { _ in log("due") }, Session { _ in log("aside") }]
            loop.add(released[0], at: ms(10), forMode: [.default])
            let first = Session { _ in loop.add(released[1], at: ms(5)) }
            let second = Session { _ in
                released = []
                log("released")
            }
            loop.add(first, at: ms(9))
            loop.add(second, at: ms(9))
            loop.run(in: .default, until: ms(8))
            simulation.spend(.milliseconds(2))
            loop.run(in: .default)
            #expect(log.text == "released")
            loop.checkInvariants()
        }
    }

    @Test("the end of its loop invalidates a timeout, and leaves it to its holder")
    func endOfLoop() {
        let log = Log<String>()
        let session = Session { _ in log("expired") }
        session.invalidationHandler = { log("invalid \(session.isValid)") }
        withSimulation { $0.loop.add(session, at: ms(10)) }
        #expect(log.text == "invalid false")
        #expect(!session.isValid)
        #expect(session.fireDate == nil)
        #expect(!session.rearm(at: ms(10)))
        session.cancel()
    }

    @Test("the end of a loop releases timeouts that only invalidation handlers keep, once")
    func releasedByEndOfLoop() {
        let log = Log<String>()
        withSimulation { simulation in
            let loop = simulation.loop
            let second = Session(keeping: Token { log("second gone") })
            loop.add(second, at: ms(20))
            let timer = loop.timer(10) { _ in }
            timer.invalidationHandler = { withExtendedLifetime(second) {} }
        }
        #expect(log.text == "second gone")
    }

    @Test("a timeout whose loop ends in its own call is invalid, and the loop is left alone")
    func loopEndsInCall() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let session = Session { session in
                session.rearm(at: ms(20))
                loop.tearDown()
                log("\(session.isValid) \(session.rearm(at: ms(30)))")
            }
            loop.add(session, at: ms(10))
            loop.run(in: .default)
            #expect(log.text == "false false")
            loop.add(session, at: ms(20))
            let late = Session()
            loop.add(late, at: ms(20))
            #expect(!late.isValid && late.fireDate == nil)
        }
    }

    @Test("an invalid timeout is out of its loop for good, and adding it is reported")
    func invalidated() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let session = Session()
            session.name = "idle"
            session.invalidationHandler = { log("invalid \(session.isValid) \(session.fireDate == nil)") }
            loop.add(session, at: ms(10))
            session.invalidate()
            session.invalidate()
            #expect(log.text == "invalid false true")
            loop.trace = { log("\($0)") }
            loop.add(session, at: ms(10))
            #expect(log.entries.last == "ignored: \(session) was added, but it is invalid; make a new one")
            #expect(session.fireDate == nil)
            loop.checkInvariants()
        }
    }

    // MARK: Threads

    @Test("on another thread than its loop's, a timeout traps", arguments: ["cancel", "rearm", "release", "add"])
    func onAnotherThread(use: String) async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [use] in
            TimeoutTests.useElsewhere(use)
        }
        #expect(says("are used on the loop's own thread only", result))
    }

    private static func useElsewhere(_ use: String) {
        nonisolated(unsafe) let loop = RunLoop.current
        nonisolated(unsafe) var session: Session? = Session()
        loop.add(session!, at: loop.now + .seconds(1))
        onThread {
            switch use {
            case "cancel": session!.cancel()
            case "rearm": session!.rearm(at: ms(0))
            case "release": session = nil
            default: loop.add(Session(), at: ms(0))
            }
        }
    }

    @Test("a timeout that is not scheduled may be released on any thread")
    func releasedElsewhere() {
        withSimulation { simulation in
            nonisolated(unsafe) var session: Session? = Session()
            simulation.loop.add(session!, at: ms(10))
            session!.cancel()
            onThread { session = nil }
            #expect(session == nil)
        }
    }

    @Test("a timeout that is added to a second loop traps")
    func otherLoop() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            func addTwice() {
                withSimulation { first in
                    let session = Session()
                    first.loop.add(session, at: ms(10))
                    withSimulation { $0.loop.add(session, at: ms(10)) }
                }
            }
            addTwice()
        }
        #expect(says("was added to a loop, but it is in another one; remove it there first", result))
    }

    // MARK: Reports

    @Test("traces and dumps show a timeout as a timer, with its name, its place and its date")
    func reports() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let line: UInt32 = #line + 1
            let session = Session { session in
                log("\(loop.dump().items.map(\.deadline))")
                session.name = nil
                if loop.now == ms(10) { session.rearm(at: ms(20)) }
            }
            session.name = "idle"
            loop.add(session, at: ms(10), forMode: .common)
            let item = loop.dump().items[0]
            #expect(item.kind == .timer && item.name == "idle" && item.origin.line == line)
            #expect(item.deadline == ms(10) && item.isCommon && item.modes == [.default])
            #expect("\(session)" == "timer \"idle\" (RunLoopCoreTests/TimeoutTests.swift:\(line))")
            loop.trace = { log("\($0)") }
            loop.run(in: .default)
            let date = "[Optional(0.010000000)]", next = "[Optional(0.020000000)]"
            #expect(
                log.entries == [
                    "run default", "fire idle due 0.010000000", date, "fire timeout due 0.020000000", next,
                    "end default finished",
                ])
        }
    }

    @Test("a flight records the call that added a timeout, and the call that moved it")
    func causes() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let recorder = try FlightRecorder(loop)
            let session = Session { session in
                if loop.now == ms(20) { session.rearm(at: ms(30)) }
            }
            session.name = "idle"
            loop.perform(at: ms(10)) { loop.add(session, at: ms(20)) }
            loop.run(in: .default)
            let calls = try recorder.memory.flight().calls
            #expect(calls.map(\.handler?.kind) == [.delayedCall, .timer, .timer])
            #expect(calls.map(\.handler?.name) == [nil, "idle", "idle"])
            #expect(calls.map { $0.cause?.handler?.kind } == [nil, .delayedCall, .timer])
            #expect(calls.allSatisfy { $0.lateness == .zero })
        }
    }
}
