import Glibc
import RunLoopKit
import RunLoopSimulation
import RunLoopTLS
import RunLoopUnix
import TLSTestSupport
import TestSupport
import Testing

/// One side of a conversation, and its events.
final class Side {
    var connection: Connection!
    var received: [UInt8] = []
    var reason: Connection.CloseReason?
    var isSecured = false
    /// The receive handler; without one, received bytes are kept.
    var receive: ((Side, Span<UInt8>) -> Int)?

    /// Returns `true` if exactly these bytes have arrived; an expectation would print them all.
    func hasReceived(_ bytes: some Collection<UInt8>) -> Bool { areSame(received, bytes) }

    var text: String { String(decoding: received, as: UTF8.self) }
    var error: TLSError? {
        if case .failed(let error as TLSError) = reason { error } else { nil }
    }

    func begin() throws {
        connection.handshakeHandler = { [unowned self] _ in isSecured = true }
        connection.closeHandler = { [unowned self] in reason = $1 }
        try connection.start()
    }

    func take(_ bytes: Span<UInt8>) -> Int {
        if let receive { return receive(self, bytes) }
        bytes.withUnsafeBufferPointer { received += $0 }
        return bytes.count
    }

    /// Makes the server's side on a descriptor.
    static func server(
        _ descriptor: Int32, on loop: RunLoop, _ context: TLSServerContext, inModes modes: RunLoop.Modes = .common,
        limits: Connection.Limits = .init()
    ) throws -> Side {
        let side = Side()
        side.connection = try Connection(adopting: descriptor, on: loop, inModes: modes, limits: limits, tls: context) {
            [unowned side] in side.take($1)
        }
        try side.begin()
        return side
    }

    /// Makes the client's side on a descriptor.
    static func client(
        _ descriptor: Int32, on loop: RunLoop, _ context: TLSClientContext, host: String = "localhost",
        inModes modes: RunLoop.Modes = .common, limits: Connection.Limits = .init()
    ) throws -> Side {
        let side = Side()
        side.connection = try Connection(
            adopting: descriptor, on: loop, inModes: modes, limits: limits, tls: context, serverName: host
        ) { [unowned side] in side.take($1) }
        try side.begin()
        return side
    }
}

extension Contexts {
    /// Makes both sides of a conversation, which is about to begin.
    func connect(
        on loop: RunLoop, host: String = "localhost", inModes modes: RunLoop.Modes = .common,
        limits: Connection.Limits = .init(), clientLimits: Connection.Limits? = nil
    ) throws -> (server: Side, client: Side) {
        let (one, other) = makeSockets()
        return (
            try .server(one, on: loop, server, inModes: modes, limits: limits),
            try .client(other, on: loop, client, host: host, inModes: modes, limits: clientLimits ?? limits)
        )
    }
}
