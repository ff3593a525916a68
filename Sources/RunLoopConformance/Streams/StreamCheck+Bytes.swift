@_spi(Ports) internal import RunLoopKit
internal import RunLoopSimulation
@_spi(Ports) internal import RunLoopUnix
internal import TestSupport
internal import Testing

extension StreamCheck {
    static let ofBytes = [
        StreamCheck("what one end writes, the other one reads, in both directions", bothDirections),
        StreamCheck("a reader with room for one byte at a time misses nothing", littleRoom),
        StreamCheck("pieces that are written together arrive in their order", gathered),
        StreamCheck("a write of no bytes moves none", nothing),
        StreamCheck(
            "a stream takes a limited number of bytes for a peer that does not read, and continues when it reads", full),
    ]

    /// Expects that an end has received exactly these bytes; an expectation of arrays would print them all.
    static func expect(_ user: StreamUser, received bytes: [UInt8]) {
        let isExact = areSame(user.received, bytes)
        #expect(isExact, "\(user.received.count) bytes have arrived that are not the \(bytes.count) that were written")
    }

    private static func amount(_ subject: StreamSubject, _ count: Int) -> Int {
        subject.movesLittle ? max(1, count / 1000) : count
    }

    private static func bothDirections(_ subject: StreamSubject) throws {
        try subject.run { simulation, one, other in
            var written: ([UInt8], [UInt8]) = ([], [])
            for (number, count) in [1, 10, 1000, 20_000, 70_000, 300_000].enumerated() {
                let count = amount(subject, count)
                let (there, back) = (randomBytes(count, seed: UInt64(number)), randomBytes(count / 2 + 1, seed: 99))
                written.0 += there
                written.1 += back
                one.write(there)
                other.write(back)
                let isThere = simulation.reaches {
                    other.received.count >= written.0.count && one.received.count >= written.1.count
                }
                #expect(isThere, "\(count) bytes")
            }
            expect(other, received: written.0)
            expect(one, received: written.1)
            #expect(one.inputEnd == nil && other.inputEnd == nil)
        }
    }

    private static func littleRoom(_ subject: StreamSubject) throws {
        try subject.run { simulation, one, other in
            other.room = 1
            let bytes = randomBytes(amount(subject, 20_000), seed: 1)
            one.write(bytes)
            #expect(simulation.reaches { other.received.count >= bytes.count })
            expect(other, received: bytes)
        }
    }

    private static func gathered(_ subject: StreamSubject) throws {
        try subject.run { simulation, one, other in
            one.gathers = true
            var written: [UInt8] = []
            for (number, count) in [1, 2, 3, 100, 1023, 5000, 30_000, 200_000].enumerated() {
                let bytes = randomBytes(count < 10 ? count : amount(subject, count), seed: UInt64(number))
                written += bytes
                one.write(bytes)
                #expect(simulation.reaches { other.received.count >= written.count }, "\(count) bytes")
            }
            expect(other, received: written)
        }
    }

    private static func nothing(_ subject: StreamSubject) throws {
        try subject.run { simulation, one, other in
            let empty = [UInt8](repeating: 0, count: 1)
            let result = empty.withUnsafeBytes { one.stream.write(UnsafeRawBufferPointer(rebasing: $0.prefix(0))) }
            #expect(result == .done(0))
            let pieces = empty.withUnsafeBytes { [UnsafeRawBufferPointer(rebasing: $0.prefix(0))] }
            for pieces in [pieces, []] {
                #expect(pieces.withUnsafeBufferPointer { one.stream.write(gathering: $0) } == .done(0))
            }
            one.write([1, 2, 3])
            #expect(simulation.reaches { other.received.count >= 3 })
            #expect(other.received == [1, 2, 3])
        }
    }

    private static func full(_ subject: StreamSubject) throws {
        try subject.run { simulation, one, other in
            other.reads = false
            var written: [UInt8] = []
            // Output that is still unsent after a second waits for the reader, not for the network.
            while !one.hasOutput && written.count < 64 << 20 {
                let bytes = randomBytes(amount(subject, 1 << 18), seed: UInt64(written.count))
                written += bytes
                one.write(bytes)
                if one.hasOutput { simulation.advance(by: .seconds(1)) }
            }
            #expect(one.hasOutput, "\(written.count) bytes were taken for a peer that reads none")
            expect(other, received: [])
            other.reads = true
            one.write([1])
            written.append(1)
            #expect(simulation.reaches { other.received.count >= written.count })
            expect(other, received: written)
        }
    }
}
