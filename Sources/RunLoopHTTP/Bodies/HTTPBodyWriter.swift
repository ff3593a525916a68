#if Adapters
public import HTTPTypes
public import NIOCore

/// A body that is being written. It belongs to the thread of the connection's loop.
public struct HTTPBodyWriter {
    private let body: OutgoingBody

    init(_ body: OutgoingBody) {
        self.body = body
    }

    /// Writes bytes, and waits while too much is unread by the peer. On the loop's thread.
    ///
    /// - Throws: ``HTTPServer/ExchangeError`` or ``HTTPClient/Failure`` if the connection has closed, or if more is written
    ///   than was announced; `CancellationError`.
    public nonisolated(nonsending) func write(_ bytes: ByteBuffer) async throws {
        try await body.writeAndWait(bytes)
    }

    /// Writes bytes as ``write(_:)-(ByteBuffer)`` does.
    public nonisolated(nonsending) func write(_ bytes: some Sequence<UInt8>) async throws {
        try await body.writeAndWait(ByteBuffer(bytes: bytes))
    }

    /// Writes a text as ``write(_:)-(ByteBuffer)`` does.
    public nonisolated(nonsending) func write(_ text: String) async throws {
        try await body.writeAndWait(ByteBuffer(string: text))
    }

    /// The fields to send after the body, if its length was not announced. On the loop's thread.
    public var trailers: HTTPFields? {
        get { body.trailers }
        nonmutating set { body.trailers = newValue }
    }
}

@available(*, unavailable, message: "a body is written on the thread of its loop")
extension HTTPBodyWriter: Sendable {}
#endif
