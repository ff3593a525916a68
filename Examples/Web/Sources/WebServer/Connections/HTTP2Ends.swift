internal import Logging
internal import NIOCore
internal import NIOHTTP2

/// Closes a connection of HTTP/2 after an error that ends it. It is behind the protocol handler.
///
/// That one sends `GOAWAY` and parses no more, but it leaves the connection open, and would keep all that the client goes
/// on to send.
final class HTTP2Ends: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame

    private let client: Client
    /// In front of the protocol handler.
    let frames = Frames()

    init(_ client: Client) {
        self.client = client
    }

    // The frame has been flushed. An error of one stream comes here as well, and ends nothing.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        client.site.log.debug("\(client.peer): \(error)")
        // A client that was told of the end before, with a lower stream, cannot be told of the error.
        guard frames.haveEnded || error is NIOHTTP2Errors.RaisedGoawayLastStreamID else { return }
        context.close(promise: nil)
    }

    /// Looks for `GOAWAY` with an error among the frames that are sent. The protocol handler tells nobody of it.
    final class Frames: ChannelOutboundHandler {
        typealias OutboundIn = IOData

        private(set) var haveEnded = false
        /// The bytes of the present frame that are still to come, in writes of their own.
        private var rest = 0

        private static let (headLength, goAway): (Int, UInt8) = (9, 7)

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            let bytes = unwrapOutboundIn(data)
            if rest == 0, case .byteBuffer(let frame) = bytes { begin(frame.readableBytesView) }
            rest -= bytes.readableBytes
            context.write(data, promise: promise)
        }

        private func begin(_ frame: ByteBufferView) {
            guard frame.count >= Self.headLength else { return }
            let bytes = frame[frame.startIndex...]
            rest = Self.headLength + bytes.prefix(3).reduce(0) { $0 << 8 | Int($1) }
            // The error is behind the last stream.
            let isError = bytes.dropFirst(Self.headLength + 4).prefix(4).contains { $0 != 0 }
            if bytes[bytes.startIndex + 3] == Self.goAway, isError { haveEnded = true }
        }
    }
}
