import RunLoopKit
import RunLoopSimulation
import TLSTestSupport
import TestSupport
import Testing

@testable import RunLoopHosts
@testable import RunLoopTLS
@_spi(Ports) @testable import RunLoopUnix

/// A transport for a connection, in memory, of the system, or of a simulated network.
indirect enum Ground: Sendable, Equatable, CustomTestStringConvertible {
    case plain(StreamKind), link, poorLink, tls(Ground)

    static let all =
        StreamKind.allCases.map(Ground.plain)
        + [.link, .poorLink, .tls(.plain(.memory)), .tls(.plain(.sockets)), .tls(.poorLink)]

    var testDescription: String { "\(self)" }

    func makePair(in simulation: Simulation) throws -> (any ByteStream, any ByteStream) {
        let loop = simulation.loop
        switch self {
        case .plain(let kind): return kind.makePair(on: loop)
        case .link, .poorLink:
            let network = SimulatedNetwork(simulation)
            if self == .poorLink {
                var link = NetworkLink()
                (link.latency, link.jitter, link.lossRate) = (.milliseconds(2), .milliseconds(5), 0.01)
                link.bandwidth = 10_000_000
                network.setLink(link, between: network.test, and: network.test)
            }
            let (one, other) = network.makeSocketPair()
            return (DescriptorStream(one, on: loop), DescriptorStream(other, on: loop))
        case .tls(let ground): return try encrypt(ground.makePair(in: simulation))
        }
    }

    private func encrypt(_ pair: (any ByteStream, any ByteStream)) throws -> (any ByteStream, any ByteStream) {
        let contexts = try Contexts()
        return (
            TLSStream(try TLSSession(contexts.server), over: pair.0),
            TLSStream(try TLSSession(contexts.client, serverName: "localhost"), over: pair.1)
        )
    }
}

/// One side of a random conversation.
private final class Talker {
    var connection: Connection!
    var received: [UInt8] = []
    var written: [UInt8] = []
    var reason: Connection.CloseReason?
    var isFull = false
    var pauses = 0
}

/// A connection behaves the same on every transport.
@Suite("Every kind of stream")
struct StreamConformanceTests {
    @Test(
        "random writes, pauses and modes on both sides: all that was written arrives, and both ends are ends",
        arguments: Ground.all, 0..<5)
    func conversations(ground: Ground, round: UInt64) throws {
        let seed = UInt64.random(in: 0...UInt64(UInt32.max)) << 8 | round
        try withSimulation { simulation in
            var random = SeededGenerator(seed: seed)
            let loop = simulation.loop
            let (one, other) = try ground.makePair(in: simulation)
            let most = ground == .plain(.memoryOfOneByte) ? 50 : 60_000
            let talkers = try zip([one, other], [RunLoop.Modes.tracking, .common]).map { stream, modes in
                var limits = Connection.Limits()
                limits.highWatermark = Int.random(in: 0..<most, using: &random)
                limits.lowWatermark = Int.random(in: 0...limits.highWatermark, using: &random)
                limits.readsWhileFull = true
                limits.maximumInput = .max
                let talker = Talker()
                let connection = Connection(
                    stream, on: loop, inModes: modes, limits: limits, origin: RunLoop.Origin(file: #fileID, line: #line)
                ) { [unowned talker] connection, bytes in
                    let isPaused = Int.random(in: 0..<10, using: &random) == 0
                    let used = isPaused ? Int.random(in: 0...bytes.count, using: &random) : bytes.count
                    bytes.extracting(0..<used).withUnsafeBufferPointer { talker.received += $0 }
                    if isPaused {
                        connection.pauseReading()
                        talker.pauses += 1
                    }
                    return used
                }
                talker.connection = connection
                connection.endHandler = { _ in }
                connection.fullHandler = { [unowned talker] in
                    #expect(!talker.isFull && $0.pendingOutput > limits.highWatermark, "seed \(seed)")
                    talker.isFull = true
                }
                connection.drainHandler = { [unowned talker] in
                    #expect(talker.isFull && $0.pendingOutput <= limits.lowWatermark, "seed \(seed)")
                    talker.isFull = false
                }
                connection.closeHandler = { [unowned talker] in talker.reason = $1 }
                if Bool.random(using: &random) {
                    connection.pauseReading()
                    talker.pauses += 1
                }
                try connection.start()
                return talker
            }
            for _ in 0..<300 {
                let talker = talkers[Int.random(in: 0..<2, using: &random)]
                switch Int.random(in: 0..<8, using: &random) {
                case 0...2:
                    let count = Int.random(
                        in: 0..<[10, most / 10, most].randomElement(using: &random)!, using: &random)
                    let bytes = randomBytes(count, using: &random)
                    talker.written += bytes
                    talker.connection.write(bytes)
                case 3:
                    talker.connection.pauseReading()
                    talker.pauses += 1
                case 4 where talker.pauses > 0:
                    talker.connection.resumeReading()
                    talker.pauses -= 1
                case 6: loop.run(in: .tracking, until: loop.now)
                default: simulation.advance(by: .milliseconds(1))
                }
            }
            for talker in talkers { talker.connection.finishWriting() }
            for _ in 0..<40_000 where talkers.contains(where: { $0.reason == nil }) {
                for talker in talkers where talker.pauses > 0 {
                    talker.connection.resumeReading()
                    talker.pauses -= 1
                }
                loop.run(in: .tracking, until: loop.now)
                simulation.advance(by: .milliseconds(1))
            }
            for (talker, peer) in zip(talkers, talkers.reversed()) {
                let isExact = talker.received == peer.written
                #expect(isExact, "seed \(seed): \(talker.received.count) of \(peer.written.count) bytes")
                #expect(talker.reason == .ended, "seed \(seed)")
            }
        }
    }

    @Test(
        "two sides that both write before they read get through if reading does not wait for writing",
        arguments: Ground.all.filter { $0 != .plain(.memoryOfOneByte) })
    func bothWays(ground: Ground) throws {
        try withSimulation { simulation in
            let (one, other) = try ground.makePair(in: simulation)
            let amount = 4 << 20
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
            #expect(received == [amount, amount] && reasons == 2, "\(ground)")
        }
    }
}
