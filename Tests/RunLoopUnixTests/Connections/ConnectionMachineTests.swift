import RunLoopKit
import TestSupport
import Testing

@testable import RunLoopUnix

/// The machine without a stream, against a model that keeps all that has happened and works out each answer anew.
@Suite("The machine of a connection")
struct ConnectionMachineTests {
    @Test("random events are answered as a naive model answers them", arguments: 0..<100)
    func model(round: UInt64) {
        let seed = UInt64.random(in: 0...UInt64(UInt32.max)) << 8 | round
        var random = SeededGenerator(seed: seed)
        var model = Model(seed: seed, random: &random)
        for _ in 0..<400 {
            model.happens(&random)
            model.settle(&random)
        }
        model.end()
    }
}

private struct Model: ~Copyable {
    let seed: UInt64
    let limits: Connection.Limits
    let hasEndHandler: Bool
    var machine: ConnectionMachine

    // What has happened.
    var isStarted = false
    var isOpen = false
    var pauses = 0
    var written = 0
    var sent = 0
    var isBlocked = false
    var isFull = false
    var peerEnded = false
    var reportedEnd = false
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
        machine = ConnectionMachine(limits)
    }

    var pending: Int { written - sent }

    mutating func happens(_ random: inout SeededGenerator) {
        switch Int.random(in: 0..<15, using: &random) {
        case 0 where !isStarted && closed == nil && mustClose == nil:
            isStarted = true
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
            let goesOn = machine.resume()
            check(goesOn == (pauses == 1))
            pauses = max(0, pauses - 1)
        case 7 where isBlocked:
            isBlocked = false
            machine.unblock()
        case 8 where machine.wantsInput && !isInHandler:
            machine.receivingBegins()
            check(!machine.interest.contains(.readable))
            let unused = Int.random(in: 0..<54, using: &random)
            machine.receivingEnds(unused: unused)
            if unused > 50, mustClose == nil { mustClose = .inputLimit }
        case 9 where machine.wantsInput && Int.random(in: 0..<4, using: &random) == 0:
            peerEnded = true
            machine.peerEnded(hasHandler: hasEndHandler)
            if lingers, mustClose == nil { mustClose = finish }
            if !lingers && !hasEndHandler && finish == nil { finish = .ended }
        case 10 where Int.random(in: 0..<6, using: &random) == 0:
            endsAfterOutput = true
            machine.finishWriting()
        case 11 where Int.random(in: 0..<10, using: &random) == 0:
            machine.finish(.closed)
            if isMoving { break }
            if !isStarted { mustClose = mustClose ?? .closed } else if finish == nil { finish = .closed }
        case 12 where Int.random(in: 0..<30, using: &random) == 0:
            machine.timeOut(.idleTimeout)
            mustClose = mustClose ?? (lingers ? finish : .idleTimeout)
        case 13:
            if isInHandler { machine.handlerEnds() } else { machine.handlerBegins() }
            isInHandler.toggle()
        case 14 where Int.random(in: 0..<30, using: &random) == 0:
            let moves = closed == nil && finish == nil && mustClose == nil
            check(machine.move() == moves)
            if moves { (isMoving, saysMove) = (true, true) }
        default: break
        }
        check(machine.wantsInput == wantsInput)
    }

    var wantsInput: Bool {
        guard closed == nil, isStarted else { return false }
        if lingers { return true }
        return finish == nil && !isMoving && !peerEnded && pauses == 0 && (!isFull || limits.readsWhileFull)
    }

    /// Carries out what the machine says; each thing it says must be right now, and when it is silent nothing must be.
    mutating func settle(_ random: inout SeededGenerator) {
        while let action = machine.next() {
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
            case .linger: lingers = true
            case .reportEnd: reportedEnd = true
            case .reportFull: isFull = true
            case .reportDrain: isFull = false
            case .move: saysMove = false
            case .close:
                closed = machine.closeReason
                check(closed == expectedReason, "closed for \(machine.closeReason)")
                machine.closed()
            }
        }
        check(expected == nil, "silence instead of \(String(describing: expected))")
    }

    private var expected: ConnectionMachine.Action? {
        if closed != nil { return nil }
        if mustClose != nil { return .close }
        if isInHandler { return nil }
        if isMoving { return saysMove ? .move : nil }
        let ends = finish != nil && isStarted || endsAfterOutput
        if isOpen && !isBlocked && !lingers && pending > 0 { return .send }
        if isOpen && !isBlocked && !lingers && ends && !toldPeer { return .endOutput }
        if limits.maximumOutput.map({ pending > $0 }) == true { return .close }
        if !isFull && pending > limits.highWatermark { return .reportFull }
        if isFull && pending <= limits.lowWatermark { return .reportDrain }
        if peerEnded && hasEndHandler && !reportedEnd && finish == nil && !lingers { return .reportEnd }
        guard toldPeer && !lingers else { return nil }
        if finish != nil { return peerEnded ? .close : .linger }
        return peerEnded ? .close : nil
    }

    private var expectedReason: Connection.CloseReason {
        if let mustClose { return mustClose }
        return limits.maximumOutput.map({ pending > $0 }) == true ? .outputLimit : finish ?? .ended
    }

    /// Cheaper than an expectation at each of so many steps.
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
