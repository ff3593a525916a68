import RunLoopKit
import TestSupport
import Testing

@testable import RunLoopUnix

/// The machine without a stream, compared with a model that keeps all events and computes each answer from them.
@Suite("The machine of a connection")
struct ConnectionMachineTests {
    @Test("random events are answered as a naive model answers them", arguments: 0..<200)
    func model(round: UInt64) {
        let seed = UInt64.random(in: 0...UInt64(UInt32.max)) << 8 | round
        var random = SeededGenerator(seed: seed)
        var model = Model(seed: seed, random: &random)
        for _ in 0..<200 {
            model.happens(&random)
            model.settle(&random)
        }
        model.end()
    }

    @Test("an unmatched resume does not take the hold of a task")
    func unmatchedResume() {
        var machine = open(isForTasks: true)
        machine.holdInput()
        let (hasResumed, wantsInput) = (machine.resume(), machine.wantsInput)
        #expect(!hasResumed && !wantsInput)
        machine.releaseInput()
        let wantsReleased = machine.wantsInput
        #expect(wantsReleased)
    }

    @Test("a connection that moves keeps the end of its output when this side has ended the input")
    func finishWritingWhileMoving() {
        var machine = open()
        machine.endInput(awaitsFirst: false)
        let action = machine.next()
        #expect(action == .reportEnd)
        machine.endReported(isAnswered: true)
        let moves = machine.move()
        machine.finishWriting()
        let endsAfterOutput = machine.endsAfterOutput
        #expect(moves && endsAfterOutput)
    }

    @Test("a connection whose both ends this side has made waits for its peer")
    func bothEnds() {
        var machine = open()
        machine.receivingBegins()
        machine.receivingEnds(unused: 1, held: 0)
        machine.pause()
        machine.endInput(awaitsFirst: false)
        machine.finishWriting()
        var actions = [machine.next()]
        machine.outputEnded()
        actions.append(machine.next())
        // The input that came before the end has been offered.
        machine.receivingBegins()
        machine.receivingEnds(unused: 0, held: 0)
        actions.append(machine.next())
        machine.endReported(isAnswered: true)
        actions.append(machine.next())
        #expect(actions == [.endOutput, nil, .reportEnd, .linger])
        let wantsInput = machine.wantsInput
        #expect(wantsInput)
    }

    private func open(isForTasks: Bool = false) -> ConnectionMachine {
        var machine = ConnectionMachine(Connection.Limits(), isForTasks: isForTasks)
        machine.start()
        machine.streamOpened()
        while machine.next() == .offerLater { _ = machine.needsTurn(holdsInput: false) }
        return machine
    }
}

private struct Model: ~Copyable {
    enum OwnEnd { case now, afterFirst }

    let seed: UInt64
    let limits: Connection.Limits
    let hasEndHandler: Bool
    let isForTasks: Bool
    var machine: ConnectionMachine

    // The events so far.
    var isStarted = false
    var isOpen = false
    var pauses = 0
    var isHeld = false
    var written = 0
    var sent = 0
    var isBlocked = false
    var isFull = false
    var peerEnded = false
    var hasCome = false
    /// This side's end of the input.
    var ownEnd: OwnEnd?
    var reportedEnd = false
    var unused = 0
    var asksAgain = false
    var hasTurn = false
    var streamHoldsInput = false
    var looks = 0
    var unsent: Int?
    var awaitsLook = false
    var saysLinger = false
    var failing: Connection.CloseReason?
    var endsAfterOutput = false
    var toldPeer = false
    var finish: Connection.CloseReason?
    var lingers = false
    var mustClose: Connection.CloseReason?
    var closed: Connection.CloseReason?
    var isInHandler = false
    var isMoving = false
    var saysMove = false

    init(seed: UInt64, random: inout SeededGenerator) {
        self.seed = seed
        var limits = Connection.Limits()
        limits.highWatermark = Int.random(in: 0..<100, using: &random)
        limits.lowWatermark = Int.random(in: 0...limits.highWatermark, using: &random)
        limits.maximumOutput = Bool.random(using: &random) ? 300 : nil
        limits.maximumInput = 50
        limits.readsWhileFull = Bool.random(using: &random)
        self.limits = limits
        hasEndHandler = Bool.random(using: &random)
        isForTasks = Int.random(in: 0..<4, using: &random) == 0
        machine = ConnectionMachine(limits, isForTasks: isForTasks)
    }

    var pending: Int { written - sent }

    mutating func happens(_ random: inout SeededGenerator) {
        streamHoldsInput = Int.random(in: 0..<4, using: &random) == 0
        switch Int.random(in: 0..<23, using: &random) {
        case 0 where !isStarted && closed == nil && mustClose == nil:
            (isStarted, asksAgain) = (true, true)
            machine.start()
        case 1 where isStarted && !isOpen:
            isOpen = true
            machine.streamOpened()
        case 2...4 where machine.mayWrite:
            written += Int.random(in: 1..<80, using: &random)
            machine.outputChanged(to: pending)
        case 5:
            pauses += 1
            machine.pause()
        case 6:
            check(machine.resume() == (pauses > 0))
            if pauses == 1 && !isHeld { asksAgain = true }
            pauses = max(0, pauses - 1)
        case 7 where isBlocked:
            isBlocked = false
            machine.unblock()
        case 8 where machine.wantsInput && !isInHandler:
            if finish == nil { offer(&random) }
        case 9 where machine.wantsInput && Int.random(in: 0..<4, using: &random) == 0:
            peerEnded = true
            if failing != nil && Bool.random(using: &random) { machine.inputExhausted() } else { machine.peerEnded() }
            if lingers, mustClose == nil { mustClose = finish }
        case 10 where Int.random(in: 0..<6, using: &random) == 0:
            endsAfterOutput = true
            machine.finishWriting()
            let isAlive = isStarted && closed == nil && mustClose == nil && failing == nil && !isMoving
            if isAlive && reportedEnd && !peerEnded && finish == nil { finish = .closed }
        case 11 where Int.random(in: 0..<10, using: &random) == 0:
            machine.finish(.closed)
            if isMoving { break }
            if failing != nil {
                mustClose = mustClose ?? failing
            } else if !isStarted {
                mustClose = mustClose ?? .closed
            } else if finish == nil {
                finish = .closed
            }
        case 12 where Int.random(in: 0..<30, using: &random) == 0:
            machine.timeOut(.idleTimeout)
            mustClose = mustClose ?? (lingers ? finish : failing ?? .idleTimeout)
        case 13:
            if isInHandler { machine.handlerEnds() } else { machine.handlerBegins() }
            isInHandler.toggle()
        case 14 where Int.random(in: 0..<30, using: &random) == 0:
            let moves = closed == nil && finish == nil && mustClose == nil && failing == nil
            check(machine.move() == moves)
            if moves { (isMoving, saysMove) = (true, true) }
        case 15 where hasTurn:
            hasTurn = false
            let isDue = asksAgain && mayOffer
            let offers = isDue && unused > 0 && !isForTasks
            check(machine.turnBegins() == offers)
            if isDue { asksAgain = false }
            if offers { offer(&random) }
            let reads = wantsInput && (streamHoldsInput || failing != nil)
            check(machine.readsInTurn(holdsInput: streamHoldsInput) == reads)
        case 16:
            asksAgain = true
            machine.offerAgain()
        case 17 where awaitsLook:
            awaitsLook = false
            look(&random)
        case 18 where isOpen && closed == nil && Int.random(in: 0..<10, using: &random) == 0:
            fail(&random)
        case 19 where isForTasks:
            isHeld = true
            machine.holdInput()
            check(machine.holdsInput)
        case 20 where isForTasks:
            if isHeld && pauses == 0 { asksAgain = true }
            isHeld = false
            machine.releaseInput()
        case 21 where isStarted && closed == nil && Int.random(in: 0..<20, using: &random) == 0:
            let reason = Connection.CloseReason.failed(SystemError("read", errno: 104))
            mustClose = mustClose ?? failing ?? reason
            machine.inputFailed(reason)
        case 22 where Int.random(in: 0..<10, using: &random) == 0:
            let awaitsFirst = Bool.random(using: &random)
            machine.endInput(awaitsFirst: awaitsFirst)
            guard isStarted && closed == nil && finish == nil && mustClose == nil && failing == nil else { break }
            guard !isMoving && !isInputOver else { break }
            if endsAfterOutput { finish = .closed } else if !awaitsFirst { ownEnd = .now }
            if finish == nil && ownEnd == nil { ownEnd = .afterFirst }
        default: break
        }
        check(machine.wantsInput == wantsInput)
    }

    /// Offers input to the receive handler, which may ask again for its unused input.
    private mutating func offer(_ random: inout SeededGenerator) {
        check(finish == nil && closed == nil, "input is offered to a connection that ends")
        machine.receivingBegins()
        hasCome = true
        if !isForTasks { asksAgain = false }
        check(!machine.interest.contains(.readable))
        check(!machine.turnBegins(), "a handler is called within itself")
        hasTurn = false
        unused = Int.random(in: 0..<54, using: &random)
        let held = Int.random(in: 0..<8, using: &random) == 0 ? 20 : 0
        if Bool.random(using: &random) {
            asksAgain = true
            machine.offerAgain()
        }
        machine.receivingEnds(unused: unused, held: held)
        check(machine.unusedInput == unused)
        if unused + held > 50, mustClose == nil { mustClose = .inputLimit }
    }

    private mutating func fail(_ random: inout SeededGenerator) {
        let reason = Connection.CloseReason.failed(SystemError("write", errno: 32))
        let mayRead = isStarted && finish == nil && failing == nil && mustClose == nil && !isMoving && !reportedEnd
        check(machine.mayReadAfterFailure == mayRead)
        let keepsInput = mayRead && Bool.random(using: &random)
        if keepsInput {
            (unused, hasCome) = (max(unused, 1), true)
            machine.inputChanged(to: unused)
        }
        let hasInput = mayRead && (keepsInput || isOfferHeld)
        check(machine.outputFailed(reason, keepsInput: keepsInput) == hasInput)
        guard hasInput else { return mustClose = mustClose ?? reason }
        asksAgain = true
        failing = reason
        (written, sent, isBlocked) = (0, 0, false)
    }

    private mutating func look(_ random: inout SeededGenerator) {
        let now = Bool.random(using: &random) ? 0 : Int.random(in: 1...1_000, using: &random)
        let mayClose = Int.random(in: 0..<20, using: &random) == 0
        let isQuiet = Bool.random(using: &random)
        if !isQuiet { machine.discarded() }
        let isProgress = closed == nil && unsent.map { now < $0 } ?? true
        check(machine.looked(unsent: now, mayClose: mayClose) == isProgress)
        if isProgress { (unsent, looks) = (now, 0) }
        looks += 1
        if (mayClose && isQuiet) || looks > 300 { mustClose = mustClose ?? finish } else { saysLinger = true }
    }

    var mayOffer: Bool {
        closed == nil && isStarted && finish == nil && !isMoving && !reportedEnd && pauses == 0 && !isHeld
            && (!isFull || limits.readsWhileFull || failing != nil)
    }

    var wantsInput: Bool {
        closed == nil && mustClose == nil && isStarted && (finish != nil ? !peerEnded : mayOffer && !isInputOver)
    }

    private var isInputOver: Bool { peerEnded || ownEnd == .now }
    private var isEndPending: Bool { !reportedEnd && (peerEnded || ownEnd != nil) }

    /// `true` while input that comes before the end is still to arrive or to be offered.
    private var isEndHeld: Bool { (ownEnd == .afterFirst && !peerEnded && !hasCome) || isOfferHeld }
    private var isOfferHeld: Bool { unused > 0 && !isForTasks && (asksAgain || !mayOffer) }

    /// Performs the machine's actions; each must be right now, and when there is none, none must be due.
    mutating func settle(_ random: inout SeededGenerator) {
        while true {
            let turn = closed == nil && mustClose == nil && asksForTurn()
            guard let action = machine.next() else { break }
            if action == .offerLater {
                check(machine.needsTurn(holdsInput: streamHoldsInput) == turn, "a turn that finds nothing")
                hasTurn = turn
                continue
            }
            check(!turn, "\(action) and no turn")
            check(closed == nil && action == expected, "\(action) instead of \(String(describing: expected))")
            switch action {
            case .send:
                // The stream takes a part, or nothing.
                let count = Int.random(in: 0...pending, using: &random)
                sent += count
                if pending > 0 {
                    isBlocked = true
                    machine.block()
                }
                machine.outputChanged(to: pending)
            case .endOutput:
                if Bool.random(using: &random) {
                    isBlocked = true
                    machine.block()
                } else {
                    toldPeer = true
                    machine.outputEnded()
                }
            case .offerLater: break
            case .linger: (lingers, awaitsLook, saysLinger) = (true, true, false)
            case .reportEnd:
                reportedEnd = true
                machine.endReported(isAnswered: hasEndHandler)
                let hasEndedBoth = !peerEnded && endsAfterOutput
                if !hasEndHandler { finish = peerEnded ? .ended : .closed } else if hasEndedBoth { finish = .ended }
            case .reportFull: isFull = true
            case .reportDrain: (isFull, asksAgain) = (false, true)
            case .move: saysMove = false
            case .close:
                closed = machine.closeReason
                check(closed == expectedReason, "closed for \(machine.closeReason)")
                machine.closed()
            }
        }
        check(expected == nil, "silence instead of \(String(describing: expected))")
    }

    /// Returns `true` if a turn is requested now.
    private mutating func asksForTurn() -> Bool {
        guard mayOffer && !hasTurn else { return false }
        if asksAgain && ((unused > 0 && !isForTasks) || streamHoldsInput) { return true }
        if failing != nil && !isEndPending { return true }
        asksAgain = false
        return false
    }

    private var expected: ConnectionMachine.Action? {
        if closed != nil { return nil }
        if mustClose != nil { return .close }
        if isInHandler { return nil }
        if failing != nil { return isEndPending && !isEndHeld ? .close : nil }
        if isMoving { return saysMove ? .move : nil }
        let ends = finish != nil && isStarted || endsAfterOutput
        if isOpen && !isBlocked && !lingers && pending > 0 { return .send }
        if isOpen && !isBlocked && !lingers && ends && !toldPeer { return .endOutput }
        if limits.maximumOutput.map({ pending > $0 }) == true { return .close }
        if isStarted && finish == nil {
            if !isFull && pending > limits.highWatermark { return .reportFull }
            if isFull && pending <= limits.lowWatermark { return .reportDrain }
            if isEndPending && !isEndHeld { return .reportEnd }
        }
        if saysLinger { return .linger }
        guard toldPeer && !lingers else { return nil }
        if finish != nil { return peerEnded ? .close : .linger }
        return reportedEnd && peerEnded ? .close : nil
    }

    private var expectedReason: Connection.CloseReason {
        if let reason = mustClose ?? failing { return reason }
        return limits.maximumOutput.map({ pending > $0 }) == true ? .outputLimit : finish ?? .ended
    }

    /// Records an issue if a condition fails. Cheaper than an expectation at each step.
    private func check(_ isRight: Bool, _ what: @autoclosure () -> String = "") {
        if !isRight { Issue.record("seed \(seed): \(what())") }
    }

    mutating func end() {
        if isInHandler { machine.handlerEnds() }
        machine.close(.closed)
        if closed == nil {
            check(machine.next() == .close)
            check(machine.closeReason == mustClose ?? .closed)
        }
    }
}
