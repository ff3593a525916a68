internal import NIOCore

/// Keeps a short body in memory, and answers when it is complete.
final class Collected: Responder {
    let mostBytes: (count: Int, limit: Refusal.Limit)
    private let eventLoop: any EventLoop
    private let answer: (ByteBuffer) -> EventLoopFuture<Response>
    private var body = ByteBuffer()

    init(
        on eventLoop: any EventLoop, atMost most: Int, answer: @escaping (ByteBuffer) -> EventLoopFuture<Response>
    ) {
        (self.eventLoop, mostBytes, self.answer) = (eventLoop, (most, .bodyBytes), answer)
    }

    func receive(_ bytes: ByteBuffer) -> EventLoopFuture<Void> {
        body.writeImmutableBuffer(bytes)
        return eventLoop.makeSucceededVoidFuture()
    }

    func end() -> EventLoopFuture<Response> { answer(body) }

    func abandon() {}
}
