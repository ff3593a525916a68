import NIOCore
import NIOHTTP1

/// Answers `GET` with a line of text, or for `/stream` with a mebibyte in pieces, and `POST` with the body.
final class Greeting: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    static let text = ByteBuffer(string: "Hello, world!")
    static let pieces = 64
    static let piece = ByteBuffer(repeating: 120, count: 16_384)

    private var isStream = false
    private var body = ByteBuffer()
    /// The pieces of the stream that are still to be written.
    private var rest = 0

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            isStream = head.uri == "/stream"
            body = head.method == .POST ? ByteBuffer() : Self.text
        case .body(var bytes): body.writeBuffer(&bytes)
        case .end:
            let length = isStream ? Self.pieces * Self.piece.readableBytes : body.readableBytes
            let head = HTTPResponseHead(version: .http1_1, status: .ok, headers: ["content-length": String(length)])
            context.write(wrapOutboundOut(.head(head)), promise: nil)
            if isStream {
                rest = Self.pieces
                return writePieces(context)
            }
            context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if rest > 0, context.channel.isWritable { writePieces(context) }
    }

    private func writePieces(_ context: ChannelHandlerContext) {
        while rest > 0, context.channel.isWritable {
            context.write(wrapOutboundOut(.body(.byteBuffer(Self.piece))), promise: nil)
            rest -= 1
        }
        if rest == 0 { context.write(wrapOutboundOut(.end(nil)), promise: nil) }
        context.flush()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }
}
