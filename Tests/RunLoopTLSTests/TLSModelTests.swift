import Glibc
import RunLoopKit
import RunLoopSimulation
import RunLoopTLS
import RunLoopUnix
import TestSupport
import Testing

/// Random conversations: whatever is written, in whatever pieces, arrives as it was, whoever pauses and whichever modes
/// run; and ends where it ended.
@Suite("TLS against a model")
struct TLSModelTests {
    @Test("random writes, pauses and modes on both sides", arguments: 0..<12)
    func conversations(round: UInt64) throws {
        let seed = UInt64.random(in: 0...UInt64(UInt32.max)) << 8 | round
        try withSimulation { simulation in
            var random = SeededGenerator(seed: seed)
            let loop = simulation.loop
            let contexts = try Contexts()
            var limits = Connection.Limits()
            limits.highWatermark = Int.random(in: 0..<200_000, using: &random)
            limits.lowWatermark = limits.highWatermark / 2
            // Two sides that do not read while they cannot write would wait for each other for ever.
            var clientLimits = Connection.Limits()
            clientLimits.highWatermark = .max
            let (one, other) = makeSockets()
            let sides = [
                try Side.server(one, on: loop, contexts.server, modes: .tracking, limits: limits),
                try Side.client(other, on: loop, contexts.client, limits: clientLimits),
            ]
            var written: [[UInt8]] = [[], []]
            for side in sides {
                side.connection.endHandler = { _ in }
                side.receive = { side, bytes in
                    // Sometimes only a part is used before a pause; the rest comes again after it.
                    let pauses = Int.random(in: 0..<10, using: &random) == 0
                    let used = pauses ? Int.random(in: 0...bytes.count, using: &random) : bytes.count
                    bytes.extracting(0..<used).withUnsafeBufferPointer { side.received += $0 }
                    if pauses { side.connection.pauseReading() }
                    return used
                }
            }
            for _ in 0..<300 {
                let index = Int.random(in: 0..<2, using: &random)
                let connection = sides[index].connection!
                switch Int.random(in: 0..<8, using: &random) {
                case 0...2:
                    let most = [10, 1_000, 20_000, 150_000][Int.random(in: 0..<4, using: &random)]
                    let bytes = randomBytes(Int.random(in: 0..<most, using: &random), using: &random)
                    written[index] += bytes
                    connection.write(bytes)
                case 3: connection.pauseReading()
                case 4: connection.resumeReading()
                case 5: simulation.advance(by: .milliseconds(1))
                case 6: loop.run(in: .tracking, until: loop.now)
                default: loop.run(in: .default, until: loop.now)
                }
            }
            sides.forEach { $0.connection.finishWriting() }
            for _ in 0..<20_000 where sides.contains(where: { $0.reason == nil }) {
                sides.forEach { $0.connection.resumeReading() }
                loop.run(in: .tracking, until: loop.now)
                loop.run(in: .default, until: loop.now)
            }
            for (side, sent) in zip(sides, written.reversed()) {
                let isExact = side.hasReceived(sent)
                #expect(isExact, "seed \(seed): \(side.received.count) of \(sent.count) bytes")
                #expect(side.reason == .ended, "seed \(seed)")
            }
        }
    }
}
