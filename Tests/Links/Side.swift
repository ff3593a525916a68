import Glibc
import RunLoopKit
import RunLoopUnix

/// One side of a conversation: its loop, and the events that it reports.
struct Side {
    enum Name: String, Sendable, CaseIterable {
        case client, server

        /// The side's address, on a link of either kind.
        var address: String { self == .client ? "10.7.0.2" : "10.7.0.1" }
    }

    let loop: RunLoop
    /// Called with each event: its text, and a number that chance decides.
    let report: (String, Int?) -> Void

    /// The server's endpoint.
    static var server: Endpoint { try! Endpoint(Name.server.address, port: 7) }

    func note(_ text: String, _ count: Int? = nil) { report(text, count) }

    // MARK: Connections

    /// Accepts one connection, and passes it to `body`.
    func accept(
        _ limits: Connection.Limits = .init(),
        _ body: nonisolated(nonsending) @escaping (Connection) async throws -> Void
    ) throws {
        let listener = try Listener(address: Self.server, on: loop)
        task {
            guard let connection = try await listener.accept(limits: limits) else { return }
            listener.close()
            note("accepted")
            try await use(connection, body)
        }
    }

    /// Connects to the server, and passes the connection to `body`.
    func connect(
        _ limits: Connection.Limits = .init(), timeout: Duration = .seconds(30),
        _ body: nonisolated(nonsending) @escaping (Connection) async throws -> Void = { _ in }
    ) {
        task {
            let connection = try await Connection.connect(
                to: Self.server, on: loop, limits: limits, timeout: timeout)
            note("connected")
            try await use(connection, body)
        }
    }

    private nonisolated(nonsending) func use(
        _ connection: Connection, _ body: nonisolated(nonsending) (Connection) async throws -> Void
    ) async throws {
        connection.closeHandler = { note("closed: \($1)") }
        try await body(connection)
    }

    /// Starts a task, and reports an error of it.
    func task(_ body: @escaping () async throws -> Void) {
        loop.task { do { try await body() } catch { note("\(error)") } }
    }

    /// Reads `count` bytes, and reports the first and the last of them.
    nonisolated(nonsending) func read(_ count: Int, from connection: Connection) async throws {
        var bytes: [UInt8] = []
        while bytes.count < count, let more = try await connection.read(atMost: count - bytes.count) {
            if bytes.isEmpty { note("first byte") }
            bytes += more
        }
        note(Self.areSame(bytes, as: count) ? "received \(count) bytes" : "received other bytes")
    }

    /// Reads to the end, which follows `count` bytes.
    nonisolated(nonsending) func readToEnd(_ count: Int, from connection: Connection) async throws {
        try await read(count, from: connection)
        note(try await connection.read() == nil ? "end" : "more bytes")
    }

    /// Returns bytes in which a missing, doubled or misplaced one makes a difference.
    static func bytes(_ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count { bytes += block.prefix(count - bytes.count) }
        return bytes
    }

    /// The repeated block, with a prime length that fits no size of pieces or packets.
    private static let block = (0..<10_007).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }

    /// Returns `true` if the bytes are ``bytes(_:)``; quick without an optimizer, too.
    private static func areSame(_ bytes: [UInt8], as count: Int) -> Bool {
        bytes.count == count && (count == 0 || memcmp(bytes, Self.bytes(count), count) == 0)
    }
}
