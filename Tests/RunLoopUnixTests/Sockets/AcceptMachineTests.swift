import Glibc
import RunLoopKit
import TestSupport
import Testing

@testable import RunLoopUnix

/// The machine without a socket, compared with a model that keeps the dates of all connections and counts anew each
/// time.
@Suite("The machine of a listener")
struct AcceptMachineTests {
    @Test("random events are answered as a naive model answers them", arguments: 0..<200)
    func model(round: UInt64) {
        let seed = UInt64.random(in: 0...UInt64(UInt32.max)) << 8 | round
        var random = SeededGenerator(seed: seed)
        var model = Model(seed: seed, random: &random)
        for _ in 0..<400 { model.happens(&random) }
        model.close()
    }

    @Test("a call that always fails makes the listener pause and report, and no more calls follow than in a row before")
    func lastingFailure() {
        for errno in [EPERM, ECONNABORTED, EPROTO] {
            var machine = AcceptMachine(.init(), isForTasks: false)
            let start = RunLoop.Instant(nanoseconds: 0)
            var (now, calls, reports) = (start, 0, 0)
            while now < start + .seconds(10) {
                machine.becameReady(at: now)
                while let action = machine.next() {
                    switch action {
                    case .accept:
                        calls += 1
                        // A machine that never pauses would be asked forever.
                        guard calls < 1000 else { return #expect(calls < 1000) }
                        machine.acceptFailed(errno, at: now)
                    case .pause(let end):
                        now = end
                        machine.pauseEnded()
                    case .report(errno): reports += 1
                    default: Issue.record("\(action)")
                    }
                }
            }
            #expect(calls == AcceptMachine.mostFailures + 99 && reports == 100)
        }
    }
}

private struct Model: ~Copyable {
    let seed: UInt64
    let options: Listener.Options
    let isForTasks: Bool
    var machine: AcceptMachine

    // The events so far.
    var now = RunLoop.Instant.distantPast + .seconds(1)
    var accepted: [RunLoop.Instant] = []
    var acceptedOfPeers: [UInt64: [RunLoop.Instant]] = [:]
    var refused = 0
    var turnedAway = 0
    var waits = 0
    var isAwaited = false
    var isParked = false
    var pauseEnd: RunLoop.Instant?
    var isClosed = false
    /// The errors of the round; 0 for none.
    let errors: [Int32]
    /// The number of consecutive failures that may each be about one connection.
    var failures = 0

    init(seed: UInt64, random: inout SeededGenerator) {
        self.seed = seed
        var options = Listener.Options()
        options.budget = Int.random(in: 1...8, using: &random)
        options.pause = .milliseconds(Int.random(in: 0...20, using: &random))
        let limit = { (random: inout SeededGenerator) -> RateLimit? in
            guard Bool.random(using: &random) else { return nil }
            let interval = Duration.milliseconds(Int.random(in: 1...100, using: &random))
            return RateLimit(interval: interval, burst: Int.random(in: 1...10, using: &random))
        }
        options.rateLimit = limit(&random)
        options.peerRateLimit = limit(&random)
        self.options = options
        let lasting: [Int32] = [ECONNABORTED, EPERM, EPROTO, EINTR]
        errors =
            Int.random(in: 0..<4, using: &random) == 0
            ? lasting : [0, 0, 0, 0, EAGAIN, EINTR, ECONNABORTED, EMFILE, ENOMEM, EIO]
        isForTasks = Bool.random(using: &random)
        machine = AcceptMachine(options, isForTasks: isForTasks)
    }

    mutating func happens(_ random: inout SeededGenerator) {
        switch Int.random(in: 0..<8, using: &random) {
        case 0: now = now + .milliseconds(Int.random(in: 0...30, using: &random))
        case 1 where isForTasks: awaitBegins()
        case 2 where isForTasks:
            isAwaited = false
            machine.awaitEnds()
        case 3 where pauseEnd != nil:
            now = max(now, pauseEnd!)
            pauseEnd = nil
            machine.pauseEnded()
        case 4 where Int.random(in: 0..<100, using: &random) == 0: close()
        case 5...7 where isWatching: descriptorIsReady(&random)
        default: break
        }
        checkAnswers()
    }

    private mutating func awaitBegins() {
        (isAwaited, isParked) = (true, false)
        machine.awaitBegins()
    }

    mutating func close() {
        isClosed = true
        machine.close()
        checkAnswers()
    }

    /// Makes one pass: each action must be the one that is due, and at the end none may be left.
    private mutating func descriptorIsReady(_ random: inout SeededGenerator) {
        machine.becameReady(at: now)
        for turn in 0..<options.budget where !isClosed && pauseEnd == nil {
            if isForTasks && !isAwaited {
                isParked = turn == 0
                break
            }
            if let end = end(of: options.rateLimit, accepted) {
                if turn == 0 {
                    waits += 1
                    expectPause(until: end)
                }
                break
            }
            expect(.accept)
            let error = errors.randomElement(using: &random)!
            if error == 0 {
                connectionIsAccepted(&random)
            } else {
                machine.acceptFailed(error, at: now)
                if error == EINTR { continue }
                if [ECONNABORTED, EPERM, EPROTO].contains(error) {
                    failures += 1
                    if failures < AcceptMachine.mostFailures { continue }
                }
                if error == EAGAIN { failures = 0 } else { expectFailure(error, &random) }
                break
            }
        }
        expect(nil)
    }

    private mutating func connectionIsAccepted(_ random: inout SeededGenerator) {
        failures = 0
        let host = Bool.random(using: &random) ? UInt64.random(in: 0..<3, using: &random) : nil
        machine.acceptSucceeded(from: host)
        if let host, end(of: options.peerRateLimit, acceptedOfPeers[host] ?? []) != nil {
            turnedAway += 1
            return expect(.turnAway)
        }
        if let host { acceptedOfPeers[host, default: []].append(now) }
        accepted.append(now)
        isAwaited = false
        expect(.deliver)
        // The handler cannot serve the connection, closes the listener, or the task waits again.
        if Int.random(in: 0..<20, using: &random) == 0 {
            machine.deliveryFailed(ENOSPC, at: now)
            return expectFailure(ENOSPC, &random)
        }
        if Int.random(in: 0..<100, using: &random) == 0 { return close() }
        if isForTasks && Bool.random(using: &random) { awaitBegins() }
    }

    private mutating func expectFailure(_ error: Int32, _ random: inout SeededGenerator) {
        if error == EMFILE || error == ENOMEM {
            expect(.refuse)
            if Bool.random(using: &random) {
                refused += 1
                machine.refusalSucceeded()
            }
        }
        expectPause(until: now + max(options.pause, .milliseconds(1)))
        expect(.report(errno: error))
        if Int.random(in: 0..<20, using: &random) == 0 { close() }
    }

    private mutating func expectPause(until end: RunLoop.Instant) {
        expect(.pause(until: end))
        pauseEnd = end
    }

    private mutating func expect(_ action: AcceptMachine.Action?) {
        let found = machine.next()
        check(found == action, "\(String(describing: found)) instead of \(String(describing: action))")
    }

    /// Returns the end of the current interval. Intervals follow one another, and each begins with the first connection
    /// after the previous one.
    private func end(of limit: RateLimit?, _ dates: [RunLoop.Instant]) -> RunLoop.Instant? {
        guard let limit, var begin = dates.first else { return nil }
        var count = 0
        for date in dates {
            if date >= begin + limit.interval { (begin, count) = (date, 0) }
            count += 1
        }
        let end = begin + limit.interval
        return count >= limit.burst && now < end ? end : nil
    }

    private var isWatching: Bool { !isClosed && !isParked && pauseEnd == nil }

    private mutating func checkAnswers() {
        check(machine.isWatching == isWatching, "the descriptor is watched: \(machine.isWatching)")
        check(machine.accepted == accepted.count && machine.turnedAway == turnedAway, "connections are miscounted")
        check(machine.refused == refused && machine.waits == waits, "refusals or pauses are miscounted")
        expect(nil)
    }

    /// Records an issue if a condition fails. Cheaper than an expectation at each step.
    private func check(_ isRight: Bool, _ what: @autoclosure () -> String) {
        if !isRight { Issue.record("seed \(seed): \(what())") }
    }
}
