#if Adapters
internal import NIOCore
internal import NIOWebSocket

/// The rules for a peer's frames of WebSocket that their decoder leaves to its user.
final class FrameRules: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame
    typealias InboundOut = WebSocketFrame

    /// The error for a frame that breaks the rules.
    struct Broken: Error {}

    private let areMasked: Bool

    /// - Parameter areMasked: whether the peer is a client, whose frames are masked.
    init(areMasked: Bool) {
        self.areMasked = areMasked
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        let isKnown = [.continuation, .text, .binary, .connectionClose, .ping, .pong].contains(frame.opcode)
        // Only an extension may set the reserved bits, and there is none.
        guard isKnown, (frame.maskKey != nil) == areMasked, !frame.rsv1, !frame.rsv2, !frame.rsv3 else {
            return context.fireErrorCaught(Broken())
        }
        context.fireChannelRead(data)
    }
}

extension WebSocketErrorCode {
    /// Creates the answer to a close with these bytes.
    init(answering bytes: ByteBuffer) {
        var bytes = bytes
        guard bytes.readableBytes > 0 else {
            self = .normalClosure
            return
        }
        let number = bytes.readInteger(as: UInt16.self)
        let isReason = String(validating: bytes.readableBytesView, as: UTF8.self) != nil
        switch number {
        // The permitted codes: the standard's, later ones of its registry, and the ranges for libraries and programs.
        case (1000...1003)?, (1007...1014)?, (3000...4999)?:
            self = isReason ? WebSocketErrorCode(codeNumber: Int(number!)) : .dataInconsistentWithMessage
        default: self = .protocolError
        }
    }
}
#endif
