#if Adapters
internal import NIOCore
internal import NIOHTTP2

/// Closes an HTTP/2 connection after an error that ends it. Placed after the protocol handler.
///
/// The protocol handler sends `GOAWAY` and parses no more, but it leaves the connection open, and would keep all
/// further input from the peer.
final class HTTP2Ends: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame

    /// A handler placed before the protocol handler.
    let frames: Frames

    init(isClient: Bool) {
        frames = Frames(skipping: isClient ? "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8.count : 0)
    }

    // The frame has been flushed. An error of one stream arrives here as well, and ends nothing.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // A peer that heard of the end before, with a lower stream, cannot hear of the error.
        guard frames.haveEnded || error is NIOHTTP2Errors.RaisedGoawayLastStreamID else { return }
        context.close(promise: nil)
    }

    /// Looks for `GOAWAY` with an error among the sent frames, which the protocol handler does not report.
    final class Frames: ChannelDuplexHandler {
        typealias InboundIn = IOData
        typealias OutboundIn = IOData

        private(set) var haveEnded = false
        /// The remaining bytes of the present frame, which come in writes of their own.
        private var rest: Int

        /// - Parameter count: the number of bytes before the first frame, which come in a write of their own.
        init(skipping count: Int) {
            rest = count
        }

        private static let headLength = 9
        private static let goAway: UInt8 = 7

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            let bytes = unwrapOutboundIn(data)
            if rest == 0, case .byteBuffer(let frame) = bytes { begin(frame) }
            rest -= bytes.readableBytes
            context.write(data, promise: promise)
        }

        // A channel that closes within a read reports no end of that, until which the protocol handler keeps the streams that
        // had input, and with them the whole connection. A second end does nothing.
        func channelInactive(context: ChannelHandlerContext) {
            context.fireChannelReadComplete()
            context.fireChannelInactive()
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
