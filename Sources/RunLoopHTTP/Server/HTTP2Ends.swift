#if Adapters
internal import NIOCore
internal import NIOHTTP2

/// Closes an HTTP/2 connection after an error that ends it. Placed after the protocol handler.
///
/// The protocol handler sends `GOAWAY` and parses no more, but it leaves the connection open, and would keep all
/// further input from the client.
final class HTTP2Ends: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame

    /// A handler placed before the protocol handler.
    let frames = Frames()

    // The frame has been flushed. An error of one stream arrives here as well, and ends nothing.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // A client that heard of the end before, with a lower stream, cannot hear of the error.
        guard frames.haveEnded || error is NIOHTTP2Errors.RaisedGoawayLastStreamID else { return }
        context.close(promise: nil)
    }

    /// Looks for `GOAWAY` with an error among the sent frames, which the protocol handler does not report.
    final class Frames: ChannelOutboundHandler {
        typealias OutboundIn = IOData

        private(set) var haveEnded = false
        /// The remaining bytes of the present frame, which come in writes of their own.
        private var rest = 0

        private static let headLength = 9
        private static let goAway: UInt8 = 7

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            let bytes = unwrapOutboundIn(data)
            if rest == 0, case .byteBuffer(let frame) = bytes { begin(frame) }
            rest -= bytes.readableBytes
            context.write(data, promise: promise)
        }

        private func begin(_ frame: ByteBuffer) {
            let start = frame.readerIndex
            guard frame.readableBytes >= Self.headLength, let head = frame.getInteger(at: start, as: UInt32.self)
            else { return }
            // The length has three bytes, and the type is the fourth.
            rest = Self.headLength + Int(head >> 8)
            guard UInt8(truncatingIfNeeded: head) == Self.goAway else { return }
            // The error follows the last stream.
            let error = frame.getInteger(at: start + Self.headLength + 4, as: UInt32.self)
            if let error, error != 0 { haveEnded = true }
        }
    }
}
#endif
