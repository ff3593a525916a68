#if Adapters
public import HTTPTypes
public import NIOCore

/// The body of a request or an answer: a sequence of pieces, as they arrive.
///
/// The peer is read only as fast as the program takes the pieces, of which some 64 KiB wait at most. The sequence is its own
/// iterator, and ends with the body. It belongs to the thread of the connection's loop.
public struct HTTPBody: AsyncSequence, AsyncIteratorProtocol {
    public typealias Element = ByteBuffer

    private let body: IncomingBody
    /// Kept alive with the body.
    private let owner: AnyObject?

    init(_ body: IncomingBody, of owner: AnyObject? = nil) {
        (self.body, self.owner) = (body, owner)
    }

    /// Returns the sequence itself.
    public func makeAsyncIterator() -> HTTPBody { self }

    /// The number of bytes in the body as the peer has announced it; `nil` if it has not.
    public var announcedLength: Int? { body.announcedLength }

    /// The fields after the body; `nil` before its end, and if there are none.
    public var trailers: HTTPFields? { body.trailers }

    /// Waits for the next piece; `nil` at the end of the body. On the loop's thread.
    ///
    /// - Throws: on a server, ``HTTPServer/Refusal`` with status 413 for a body that is longer than
    ///   ``HTTPServer/Limits/bodyBytes``, and ``HTTPServer/ExchangeError/closed`` if the client has gone; of a client,
    ///   ``HTTPClient/Failure``; `CancellationError`.
    public func next(isolation: isolated (any Actor)? = #isolation) async throws -> ByteBuffer? {
        try await body.next()
    }

    /// Waits for all of the body, and returns it. On the loop's thread.
    ///
    /// - Parameters:
    ///   - limit: the largest number of bytes, in place of ``HTTPServer/Limits/bodyBytes``.
    ///   - isolation: the isolation of the caller.
    /// - Throws: as ``next(isolation:)``; of a client, ``HTTPClient/Failure/bodyLimit`` for a longer body.
    public func collect(upTo limit: Int, isolation: isolated (any Actor)? = #isolation) async throws -> ByteBuffer {
        body.maximum = limit
        guard var whole = try await body.next() else { return ByteBuffer() }
        while var piece = try await body.next() { whole.writeBuffer(&piece) }
        return whole
    }
}

@available(*, unavailable, message: "a body belongs to the thread of its loop")
extension HTTPBody: Sendable {}
#endif
