@_spi(Ports) internal import RunLoopKit
internal import RunLoopSimulation
@_spi(Ports) internal import RunLoopUnix
internal import TestSupport
internal import Testing

extension StreamCheck {
    static let ofEnds = [
        StreamCheck("an end that has written its last still reads, and both ends find the end", halfEnd),
        StreamCheck("the end comes after all bytes, also of a peer that reads late", lateReader),
        StreamCheck("once both sides have ended, a stream may be closed without loss", mayClose),
        StreamCheck("the peer of a stream that was closed completely has all bytes, and their end", complete),
        StreamCheck("the peer of a stream that was closed is not left waiting", abrupt),
        StreamCheck("a write to a peer that has gone fails, with a reason", gone),
    ]

    private static func halfEnd(_ subject: StreamSubject) throws {
        try subject.run { simulation, one, other in
            one.write([1, 2, 3])
            one.finish()
            #expect(simulation.reaches { other.inputEnd != nil })
            #expect(other.received == [1, 2, 3] && other.inputEnd == .ended)
            #expect(simulation.reaches { one.outputEnd != nil })
            #expect(one.outputEnd == .done(0) && one.inputEnd == nil)
            let answer = randomBytes(subject.movesLittle ? 50 : 50_000, seed: 2)
            other.write(answer)
            other.finish()
            #expect(simulation.reaches { one.inputEnd != nil && other.outputEnd != nil })
            expect(one, received: answer)
            #expect(one.inputEnd == .ended && other.outputEnd == .done(0))
        }
    }

    private static func lateReader(_ subject: StreamSubject) throws {
        try subject.run { simulation, one, other in
            other.reads = false
            let bytes = randomBytes(subject.movesLittle ? 50 : 1 << 20, seed: 3)
            one.write(bytes)
            one.finish()
            simulation.advance(by: .seconds(1))
            expect(other, received: [])
            #expect(other.inputEnd == nil)
            other.reads = true
            #expect(simulation.reaches { other.inputEnd != nil })
            expect(other, received: bytes)
            #expect(other.inputEnd == .ended)
        }
    }

    private static func mayClose(_ subject: StreamSubject) throws {
        try subject.run { simulation, one, other in
            for user in [one, other] {
                user.write([1, 2, 3])
                user.finish()
            }
            #expect(simulation.reaches { one.inputEnd != nil && other.inputEnd != nil })
            for user in [one, other] {
                #expect(simulation.reaches { user.stream.mayClose(peerHasEnded: true) })
                #expect(simulation.reaches { user.stream.unsentOutput == 0 })
                #expect(user.inputEnd == .ended && user.outputEnd == .done(0))
            }
        }
    }

    private static func complete(_ subject: StreamSubject) throws {
        try subject.run { simulation, one, other in
            other.finish()
            #expect(simulation.reaches { one.inputEnd != nil && other.outputEnd != nil })
            let bytes = randomBytes(subject.movesLittle ? 50 : 100_000, seed: 4)
            one.write(bytes)
            #expect(simulation.reaches { !one.hasOutput })
            one.finish()
            #expect(simulation.reaches { one.outputEnd != nil && one.stream.mayClose(peerHasEnded: true) })
            one.close(.complete)
            #expect(simulation.reaches { other.inputEnd != nil })
            expect(other, received: bytes)
            #expect(other.inputEnd == .ended)
        }
    }

    private static func abrupt(_ subject: StreamSubject) throws {
        for ending in [StreamEnding.complete, .incomplete, .reset] {
            try subject.run { simulation, one, other in
                one.write([1])
                #expect(simulation.reaches { other.received == [1] })
                one.close(ending)
                #expect(simulation.reaches { other.inputEnd != nil }, "closed as \(ending)")
                #expect((other.inputEnd == .failed) == (other.stream.failure != nil), "closed as \(ending)")
            }
        }
    }

    private static func gone(_ subject: StreamSubject) throws {
        try subject.run { simulation, one, other in
            one.reads = false
            other.close(.incomplete)
            var count = 0
            while one.outputEnd == nil && count < 10_000 {
                one.write([UInt8](repeating: 1, count: 100))
                simulation.advance(by: .milliseconds(1))
                count += 1
            }
            #expect(one.outputEnd == .failed && one.stream.failure != nil)
        }
    }
}
