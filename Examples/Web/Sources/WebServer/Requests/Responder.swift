internal import NIOCore
internal import NIOHTTP1

/// Receives the body of a request, and makes the answer. On the event loop of the request.
protocol Responder: AnyObject {
    /// The longest accepted body, and the limit that is reached beyond.
    var mostBytes: (count: Int, limit: Refusal.Limit) { get }

    /// Takes a part of the body.
    ///
    /// - Returns: a future that succeeds when the memory is free again.
    func receive(_ bytes: ByteBuffer) -> EventLoopFuture<Void>

    /// Ends the body, which is complete.
    func end() -> EventLoopFuture<Response>

    /// Abandons the request, which will not be completed. Not called after ``end()``.
    func abandon()
}
