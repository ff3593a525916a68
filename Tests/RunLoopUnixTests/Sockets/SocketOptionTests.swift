import Glibc
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@testable import RunLoopUnix

@Suite("Options of sockets")
struct SocketOptionTests {
    private let loop = RunLoop.current

    @Test("connections, listeners and datagram sockets keep their options, and say which they do not have")
    func options() throws {
        let listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop) { _, descriptor, _ in
            close(descriptor)
        }
        try listener.setOption(.keepsAlive, to: true)
        #expect(try listener.option(.keepsAlive))
        let datagrams = try DatagramSocket(address: Endpoint("127.0.0.1", port: 0), on: loop) { _, _, _ in }
        try datagrams.setOption(.receiveBufferSize, to: 10_000)
        #expect(try datagrams.option(.receiveBufferSize) == 20_000)
        #expect(throws: SystemError("set an option of the socket", errno: ENOPROTOOPT)) {
            try datagrams.setOption(.noDelay, to: true)
        }
        let connection = try Self.connect(to: listener.address, on: loop)
        try connection.setOption(.noDelay, to: true)
        try connection.setOption(.keepAliveIdle, to: 77)
        try connection.setOption(.userTimeout, to: 5_000)
        #expect(try connection.option(.noDelay))
        #expect(try connection.option(.keepAliveIdle) == 77)
        #expect(try connection.option(.userTimeout) == 5_000)
        #expect(try connection.option(SocketOption<Int>(level: SOL_SOCKET, name: SO_TYPE)) == 1)
        connection.close()
        #expect(throws: SystemError.self) { try connection.option(.noDelay) }
        listener.close()
        datagrams.close()
        #expect(throws: SystemError.self) { try listener.setOption(.keepsAlive, to: true) }
        #expect(throws: SystemError.self) { try datagrams.option(.sendBufferSize) }
    }

    private static func connect(to address: Endpoint, on loop: RunLoop) throws -> Connection {
        let descriptor = address.withSystemAddress { pointer, length in
            let descriptor = socket(AF_INET, SocketKind.stream, 0)
            precondition(Glibc.connect(descriptor, pointer, length) == 0)
            return descriptor
        }
        return Connection(adopting: descriptor, on: loop) { $1.count }
    }

    @Test("a pipe has no options of a socket")
    func pipe() throws {
        let pair = DescriptorPair(.pipe)
        let connection = Connection(adoptingInput: dup(pair.reader), output: nil, on: loop) { $1.count }
        #expect(throws: SystemError("read an option of the socket", errno: ENOTSOCK)) {
            try connection.option(.noDelay)
        }
        connection.close()
    }
}
