import Glibc
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopUnix

/// The far end of a connection, used by hand.
final class Peer {
    private(set) var descriptor: Int32

    init(_ descriptor: Int32) {
        self.descriptor = descriptor
        RealSystem.shared.prepare(descriptor)
    }

    /// Connects a peer to an address.
    convenience init(connectedTo address: Endpoint, from own: Endpoint? = nil) {
        let descriptor = socket(address.family, SocketKind.stream, 0)
        if let own { precondition(own.withSystemAddress { bind(descriptor, $0, $1) } == 0) }
        let status = address.withSystemAddress { connect(descriptor, $0, $1) }
        precondition(status == 0, "cannot connect to \(address): errno \(errno)")
        self.init(descriptor)
    }

    deinit {
        close()
    }

    func close() {
        if descriptor >= 0 { Glibc.close(descriptor) }
        descriptor = -1
    }

    func send(_ text: String) {
        send(Array(text.utf8))
    }

    func send(_ bytes: some Collection<UInt8>) {
        let bytes = Array(bytes)
        precondition(Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count)
    }

    func end() {
        shutdown(descriptor, Int32(SHUT_WR))
    }

    /// Returns the received text; `nil` at the end of the stream.
    func receive(_ most: Int = 1 << 20) -> String? {
        receiveBytes(most).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Returns `true` if the stream has ended. A child that is about to begin has the descriptors of this process for a
    /// moment, so the other end may stay open a little longer than its owner keeps it.
    func hasEnded() -> Bool {
        var text: String? = ""
        return eventually("the stream has ended") {
            text = receive()
            return text != ""
        } && text == nil
    }

    /// Returns the received bytes; `nil` at the end of the stream.
    func receiveBytes(_ most: Int = 1 << 20) -> ArraySlice<UInt8>? {
        var bytes = [UInt8](repeating: 0, count: most)
        let count = recv(descriptor, &bytes, most, 0)
        return count == 0 ? nil : bytes.prefix(max(0, count))
    }
}

/// Makes two connected sockets: a connection of the loop, and its peer.
func makePair(
    on loop: RunLoop, limits: Connection.Limits = .init(), receive: @escaping Connection.ReceiveHandler
) throws -> (connection: Connection, peer: Peer) {
    let (one, other) = makeSockets()
    let connection = Connection(adopting: one, on: loop, limits: limits, receive: receive)
    try connection.start()
    return (connection, Peer(other))
}

extension Span<UInt8> {
    /// The bytes as text.
    var text: String { withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) } }
}
