@_spi(Ports) internal import RunLoopKit
internal import RunLoopSimulation
@_spi(Ports) internal import RunLoopUnix
internal import TestSupport
internal import Testing

/// One side of a random conversation.
private final class Talker {
    private(set) var connection: Connection!
    private(set) var received: [UInt8] = []
    var written: [UInt8] = []
    private(set) var reason: Connection.CloseReason?
    private var isFull = false
    var pauses = 0

    /// Begins with a connection of random limits, which is started with its reading paused or not.
    init(
        _ stream: any ByteStream, on loop: RunLoop, inModes modes: RunLoop.Modes, most: Int, seed: UInt64
    ) throws {
        var random = SeededGenerator(seed: seed)
        var limits = Connection.Limits()
        limits.highWatermark = Int.random(in: 0..<most, using: &random)
        limits.lowWatermark = Int.random(in: 0...limits.highWatermark, using: &random)
        limits.readsWhileFull = true
        limits.maximumInput = .max
        connection = Connection(
            stream, on: loop, inModes: modes, limits: limits, origin: RunLoop.Origin(file: #fileID, line: #line)
        ) { [unowned self] connection, bytes in
            let isPaused = Int.random(in: 0..<10, using: &random) == 0
            let used = isPaused ? Int.random(in: 0...bytes.count, using: &random) : bytes.count
            bytes.extracting(0..<used).withUnsafeBufferPointer { received += $0 }
            if isPaused { pause() }
            return used
        }
        connection.endHandler = { _ in }
        connection.fullHandler = { [unowned self] in
            #expect(!isFull && $0.pendingOutput > limits.highWatermark, "seed \(seed)")
            isFull = true
        }
        connection.drainHandler = { [unowned self] in
            #expect(isFull && $0.pendingOutput <= limits.lowWatermark, "seed \(seed)")
            isFull = false
        }
        connection.closeHandler = { [unowned self] in reason = $1 }
        if Bool.random(using: &random) { pause() }
        try connection.start()
    }

    func write(_ bytes: [UInt8]) {
        written += bytes
        connection.write(bytes)
    }

    func pause() {
        connection.pauseReading()
        pauses += 1
    }

    func resume() {
        connection.resumeReading()
        pauses -= 1
    }
}

extension StreamCheck {
    static let ofConversations = [
        StreamCheck(
            "random writes, pauses and modes on both sides: all that was written arrives, and both ends are ends",
            conversations),
        StreamCheck(
            "two sides that both write before they read get through if reading does not wait for writing", bothWays),
    ]

    private static func conversations(_ subject: StreamSubject) throws {
        for round in 0..<5 as Range<UInt64> {
            let seed = UInt64.random(in: 0...UInt64(UInt32.max)) << 8 | round
            try withSimulation { simulation in try converse(subject, in: simulation, seed: seed) }
        }
    }

    private static func converse(_ subject: StreamSubject, in simulation: Simulation, seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let loop = simulation.loop
        let (one, other) = try subject.make(simulation)
        let most = subject.movesLittle ? 50 : 60_000
        let talkers = try zip([one, other], [RunLoop.Modes.tracking, .common]).map { stream, modes in
            try Talker(stream, on: loop, inModes: modes, most: most, seed: random.next())
        }
        for _ in 0..<300 {
            let talker = talkers[Int.random(in: 0..<2, using: &random)]
            switch Int.random(in: 0..<8, using: &random) {
            case 0...2:
                let count = Int.random(in: 0..<[10, most / 10, most].randomElement(using: &random)!, using: &random)
                talker.write(randomBytes(count, using: &random))
            case 3: talker.pause()
            case 4 where talker.pauses > 0: talker.resume()
            case 6: loop.run(in: .tracking, until: loop.now)
            default: simulation.advance(by: .milliseconds(1))
            }
        }
        for talker in talkers { talker.connection.finishWriting() }
        for _ in 0..<40_000 where talkers.contains(where: { $0.reason == nil }) {
            for talker in talkers where talker.pauses > 0 { talker.resume() }
            loop.run(in: .tracking, until: loop.now)
            simulation.advance(by: .milliseconds(1))
        }
        for (talker, peer) in zip(talkers, talkers.reversed()) {
            let isExact = areSame(talker.received, peer.written)
            #expect(isExact, "seed \(seed): \(talker.received.count) of \(peer.written.count) bytes")
            #expect(talker.reason == .ended, "seed \(seed)")
        }
    }

    private static func bothWays(_ subject: StreamSubject) throws {
        try withSimulation { simulation in
            let (one, other) = try subject.make(simulation)
            let amount = subject.movesLittle ? 4 << 10 : 4 << 20
            var limits = Connection.Limits()
            limits.readsWhileFull = true
            var received = [0, 0]
            var reasons = 0
            for (index, stream) in [one, other].enumerated() {
                let connection = Connection(
                    stream, on: simulation.loop, inModes: .common, limits: limits,
                    origin: RunLoop.Origin(file: #fileID, line: #line)
                ) { _, bytes in
                    received[index] += bytes.count
                    return bytes.count
                }
                connection.closeHandler = { if $1 == .ended { reasons += 1 } }
                connection.endHandler = { _ in }
                connection.write([UInt8](repeating: 1, count: amount))
                connection.finishWriting()
                try connection.start()
            }
            for _ in 0..<100_000 where reasons < 2 { simulation.advance(by: .milliseconds(1)) }
            #expect(received == [amount, amount] && reasons == 2)
        }
    }
}
