internal import NIOCore
internal import NIOHTTP1

/// Receives the body of a request, and makes the answer. On the event loop of the request.
protocol Responder: AnyObject {
    /// The longest body that it takes, and the limit that is reached beyond.
    var mostBytes: (count: Int, limit: Refusal.Limit) { get }

    /// Takes a part of the body.
    ///
    /// - Returns: succeeds when the memory is free again.
    func receive(_ bytes: ByteBuffer) -> EventLoopFuture<Void>

    /// The body is complete.
    func end() -> EventLoopFuture<Response>

    /// The request will not be completed. Not called after ``end()``.
    func abandon()
}
