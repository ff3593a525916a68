import CountingStream
import Glibc
@_spi(Ports) import RunLoopConformance
@_spi(Ports) import RunLoopKit
import RunLoopSimulation
@_spi(Ports) import RunLoopUnix
import Testing

@Suite("A stream that counts, from outside", .timeLimit(.minutes(5)))
struct CountingTests {
    private static func makePair(on loop: RunLoop) -> (CountingStream, CountingStream) {
        var sockets: [Int32] = [-1, -1]
        #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &sockets) == 0)
        let streams = sockets.map { CountingStream(over: loop.makeStream(reading: $0, writing: $0)) }
        return (streams[0], streams[1])
    }

    private static let counting = StreamSubject("counting") { makePair(on: $0.loop) }

    @Test("meets the requirements", arguments: StreamCheck.all)
    func conforms(to requirement: StreamCheck) throws {
        try requirement.check(Self.counting)
    }

    @Test("the bytes of a conversation are counted on both sides")
    func counts() throws {
        try withSimulation { simulation in
            let (one, other) = Self.makePair(on: simulation.loop)
            let connections = [one, other].map { stream in
                Connection(
                    stream, on: simulation.loop, inModes: .common, limits: .init(),
                    origin: RunLoop.Origin(file: #fileID, line: #line)
                ) { $1.count }
            }
            for connection in connections { try connection.start() }
            connections[0].write([UInt8](repeating: 1, count: 1 << 20))
            connections[1].write("answer")
            simulation.advance(by: .zero)
            #expect(one.writtenBytes == 1 << 20 && other.readBytes == 1 << 20)
            #expect(other.writtenBytes == 6 && one.readBytes == 6)
            for connection in connections { connection.close() }
        }
    }
}
