import DeflateStream
import Glibc
@_spi(Ports) import RunLoopConformance
@_spi(Ports) import RunLoopKit
@_spi(Ports) import RunLoopUnix
import Testing

@Suite("A stream from outside", .timeLimit(.minutes(5)))
struct DeflateTests {
    /// One side of a conversation, which notes what it receives.
    private final class Side {
        let stream: DeflateStream
        private(set) var connection: Connection!
        var received: [UInt8] = []
        var reason: Connection.CloseReason?

        init(_ socket: Int32, on loop: RunLoop, answers: Bool) {
            stream = DeflateStream(over: loop.makeStream(reading: socket, writing: socket))
            var limits = Connection.Limits()
            limits.readsWhileFull = true
            limits.maximumInput = .max
            connection = Connection(
                stream, on: loop, inModes: .common, limits: limits,
                origin: RunLoop.Origin(file: #fileID, line: #line)
            ) { [unowned self] connection, bytes in
                let new = bytes.withUnsafeBufferPointer { Array($0) }
                received += new
                if answers { connection.write(new) }
                return bytes.count
            }
            connection.endHandler = { if answers { $0.finishWriting() } }
            connection.closeHandler = { [unowned self] in reason = $1 }
        }
    }

    private static let deflate = StreamSubject("deflate") { simulation in
        var sockets: [Int32] = [-1, -1]
        #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &sockets) == 0)
        let streams = sockets.map { DeflateStream(over: simulation.loop.makeStream(reading: $0, writing: $0)) }
        return (streams[0], streams[1])
    }

    @Test("meets the requirements", arguments: StreamCheck.all)
    func conforms(to requirement: StreamCheck) throws {
        try requirement.check(Self.deflate)
    }

    @Test("what is written arrives, in fewer bytes, and both ends are ends", arguments: [1, 4096, 1 << 20])
    func conversation(most: Int) throws {
        let loop = RunLoop.current
        var sockets: [Int32] = [-1, -1]
        #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &sockets) == 0)
        let client = Side(sockets[0], on: loop, answers: false)
        let server = Side(sockets[1], on: loop, answers: true)
        try client.connection.start()
        try server.connection.start()
        var written: [UInt8] = []
        for number in 0..<200 {
            let line = Array("line \(number % 17) of a text that says the same again and again\n".utf8)
            let piece = line.prefix(most) + Array(repeating: UInt8(number), count: most / 20)
            written += piece
            client.connection.write(Array(piece))
        }
        client.connection.finishWriting()
        while client.reason == nil || server.reason == nil { loop.run(mode: .default, before: loop.now + .seconds(5)) }
        #expect(server.received == written)
        #expect(client.received == written)
        #expect(client.reason == .ended && server.reason == .ended)
        if most > 1 { #expect(client.stream.sentBytes < written.count / 2) }
    }

    @Test("a peer that closes within the stream has cut it off")
    func cutOff() throws {
        let loop = RunLoop.current
        var sockets: [Int32] = [-1, -1]
        #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &sockets) == 0)
        let side = Side(sockets[0], on: loop, answers: false)
        try side.connection.start()
        close(sockets[1])
        while side.reason == nil { loop.run(mode: .default, before: loop.now + .seconds(5)) }
        #expect(side.stream.failure as? DeflateError == .cutOff)
    }
}
