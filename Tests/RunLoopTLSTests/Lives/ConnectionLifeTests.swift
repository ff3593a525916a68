import Glibc
import RunLoopKit
import RunLoopTLS
import TLSTestSupport
import TestSupport
import Testing

@testable import RunLoopUnix

/// Random lives of two connections that are each other's peers, compared with a model that knows the bytes that each
/// has written and how it has ended. `make stress` runs fifteen thousand; LIFE_SEED repeats the lives of one seed.
@Suite("Lives of connections", .timeLimit(.minutes(30)))
struct ConnectionLifeTests {
    private static let livesAtATime = 50

    @Test(
        "a connection closes once, is silent afterwards and after finish(), and loses nothing that was written before")
    func lives() throws {
        let failures = onThread {
            let contexts = try! Contexts()
            let first = getenv("LIFE_SEED").flatMap { UInt64(String(cString: $0)) }
            let seed = first ?? UInt64.random(in: 0...UInt64(UInt32.max))
            var failures: [String] = []
            for batch in 0..<(amount(of: "CONNECTION_LIVES", usually: 500) / Self.livesAtATime) {
                failures += Self.live(seed &+ UInt64(batch), contexts)
                guard failures.isEmpty else { break }
            }
            return failures
        }
        #expect(failures.isEmpty, "\(failures.joined(separator: "\n"))")
    }

    private static func live(_ seed: UInt64, _ contexts: Contexts) -> [String] {
        let loop = RunLoop.current
        var random = SeededGenerator(seed: seed)
        let lives = (0..<livesAtATime).map { Life($0, SeededGenerator(seed: random.next()), contexts, on: loop) }
        let limit = loop.now + .seconds(300)
        while lives.contains(where: { !$0.isOver }) && loop.now < limit {
            loop.run(in: .default, until: min(limit, loop.now + .milliseconds(20)))
        }
        return lives.flatMap { life in life.judge().map { "seed \(seed): \(life): \($0)" } }
    }
}

/// Two connections and their conduct.
private final class Life: CustomStringConvertible {
    let number: Int
    let isTCP: Bool
    let isTLS: Bool
    /// `true` if no side closes, resets or fails at once.
    let isGentle: Bool
    private(set) var ends: [End] = []

    init(_ number: Int, _ random: consuming SeededGenerator, _ contexts: Contexts, on loop: RunLoop) {
        self.number = number
        isTCP = Bool.random(using: &random)
        isTLS = Bool.random(using: &random)
        isGentle = Int.random(in: 0..<3, using: &random) > 0
        let sockets = isTCP ? makeTCPSockets() : makeSockets()
        for (index, socket) in [sockets.0, sockets.1].enumerated() {
            let tls = isTLS ? (contexts, index == 0) : nil
            ends.append(End(index, socket, tls, isGentle: isGentle, SeededGenerator(seed: random.next()), on: loop))
        }
        (ends[0].other, ends[1].other) = (ends[1], ends[0])
        for end in ends { end.begin() }
    }

    var isOver: Bool { ends.allSatisfy { $0.closes > 0 } }
    var description: String { "\(number): \(isTLS ? "TLS over " : "")\(isTCP ? "TCP" : "a socket pair")" }

    /// Returns the failures.
    func judge() -> [String] {
        var failures = ends.flatMap(\.failures)
        for (end, other) in [(ends[0], ends[1]), (ends[1], ends[0])] {
            if end.closes != 1 { failures.append("\(end) has closed \(end.closes) times") }
            if end.received > other.written { failures.append("\(end) has received more than was written") }
            guard isGentle else { continue }
            // A side that finishes stops reading. Every other side receives everything.
            if !end.hasFinished && end.received < other.written {
                failures.append("\(end) misses bytes of \(other)")
            }
            if case .failed = end.reason, !other.hasFinished { failures.append("\(end) has failed") }
        }
        for end in ends { end.release() }
        return failures
    }
}

/// One of the two connections.
private final class End: CustomStringConvertible {
    private let name: String
    private let loop: RunLoop
    private var random: SeededGenerator
    private let isGentle: Bool
    private var connection: Connection!
    unowned var other: End!

    private(set) var failures: [String] = []
    private(set) var written = 0
    private(set) var received = 0
    private(set) var closes = 0
    private(set) var hasFinished = false
    private(set) var reason: Connection.CloseReason?
    private var hasEndedWriting = false
    private var hasAborted = false
    private var isPaused = false
    private var stepsLeft: Int
    private let index: Int

    init(
        _ index: Int, _ socket: Int32, _ tls: (Contexts, isServer: Bool)?, isGentle: Bool,
        _ random: consuming SeededGenerator, on loop: RunLoop
    ) {
        name = ["one", "other"][index]
        self.loop = loop
        self.isGentle = isGentle
        stepsLeft = Int.random(in: 0...8, using: &random)
        self.index = index
        var limits = Connection.Limits()
        if Bool.random(using: &random) {
            limits.highWatermark = Int.random(in: 0...100_000, using: &random)
            limits.lowWatermark = Int.random(in: 0...limits.highWatermark, using: &random)
        }
        // Otherwise two sides that write and read nothing could wait for each other.
        limits.readsWhileFull = true
        limits.maximumInput = 64 << 20
        self.random = random
        let receive: Connection.ReceiveHandler = { [self] in self.receive($0, $1) }
        switch tls {
        case (let contexts, true)?:
            connection = try! Connection(
                adopting: socket, on: loop, limits: limits, tls: contexts.server, receive: receive)
        case (let contexts, false)?:
            connection = try! Connection(
                adopting: socket, on: loop, limits: limits, tls: contexts.client, serverName: "localhost",
                receive: receive)
        case nil: connection = Connection(adopting: socket, on: loop, limits: limits, receive: receive)
        }
    }

    var description: String {
        let how = hasAborted ? ", aborted" : hasFinished ? ", finished" : hasEndedWriting ? ", finished writing" : ""
        return "\(name) (written \(written), received \(received)\(how), \(reason.map { "\($0)" } ?? "open"))"
    }

    func begin() {
        connection.closeHandler = { [self] in
            if closes > 0 { failures.append("\(self) is closed again") }
            closes += 1
            reason = $1
        }
        connection.fullHandler = { [self] _ in checkCall("full") }
        connection.drainHandler = { [self] _ in checkCall("drain") }
        connection.handshakeHandler = { [self] _ in checkCall("handshake") }
        if Bool.random(using: &random) {
            connection.endHandler = { [self] _ in
                checkCall("end")
                if chance(2) { write() }
                if chance(2) { finish() } else { finishWriting() }
            }
        }
        try! connection.start()
        after(3_000) { [self] in step() }
    }

    func release() {
        connection = nil
    }

    private func chance(_ of: Int) -> Bool { Int.random(in: 0..<of, using: &random) == 0 }

    private func after(_ microseconds: Int, _ action: @escaping () -> Void) {
        loop.perform(afterDelay: .microseconds(Int.random(in: 0...microseconds, using: &random))) { [weak self] in
            if self != nil { action() }
        }
    }

    private func checkCall(_ handler: String) {
        if closes > 0 { failures.append("the \(handler) handler of \(self) is called after the last one") }
        if hasFinished { failures.append("the \(handler) handler of \(self) is called after finish()") }
    }

    // MARK: Conduct

    private func step() {
        guard closes == 0 else { return }
        guard stepsLeft > 0 else { return endSomehow() }
        stepsLeft -= 1
        switch Int.random(in: 0..<8, using: &random) {
        case 0..<4: write()
        case 4: pause()
        case 5: connection.receiveAgain()
        case 6: finishWriting()
        default: if !isGentle && chance(3) { abort() }
        }
        after(3_000) { [self] in step() }
    }

    private func endSomehow() {
        if chance(2) { finish() } else { finishWriting() }
    }

    private func write() {
        guard !hasFinished, !hasEndedWriting, closes == 0, !hasAborted, connection.machine.mayWrite else { return }
        let count = Int.random(in: 1...(chance(3) ? 300_000 : 3_000), using: &random)
        connection.write(bytes(at: written, count))
        written += count
    }

    /// Returns a part of the stream that this side writes, which repeats after a number of bytes that is no power of
    /// two.
    private func bytes(at offset: Int, _ count: Int) -> [UInt8] {
        let start = offset % Self.period
        return Array(Self.streams[index][start..<start + count])
    }

    private static let period = 99_991
    private static let streams = (0..<2).map { index in
        var random = SeededGenerator(seed: UInt64(index))
        let period = (0..<period).map { _ in UInt8.random(in: 0...255, using: &random) }
        return period + period + period + period + period
    }

    private func finish() {
        hasFinished = true
        connection.finish()
    }

    private func finishWriting() {
        hasEndedWriting = true
        connection.finishWriting()
    }

    private func abort() {
        hasAborted = true
        switch Int.random(in: 0..<3, using: &random) {
        case 0: connection.close()
        case 1: connection.reset()
        default: connection.fail(SystemError("go on", errno: ECANCELED))
        }
    }

    private func pause() {
        guard !isPaused else { return }
        isPaused = true
        connection.pauseReading()
        after(3_000) { [self] in
            isPaused = false
            // A pause may outlast the connection.
            connection?.resumeReading()
        }
    }

    private func receive(_ connection: Connection, _ bytes: Span<UInt8>) -> Int {
        checkCall("receive")
        if isPaused { failures.append("\(self) is given something while it is paused") }
        var used = bytes.count
        switch Int.random(in: 0..<12, using: &random) {
        case 0:
            used = Int.random(in: 0...bytes.count, using: &random)
            connection.receiveAgain()
        case 1:
            used = Int.random(in: 0...bytes.count, using: &random)
            pause()
        case 2: write()
        case 3 where stepsLeft == 0: endSomehow()
        default: break
        }
        if !bytes.withUnsafeBufferPointer({ areSame($0[..<used], other.bytes(at: received, used)) }) {
            failures.append("\(self) has received wrong bytes")
        }
        received += used
        return used
    }
}
