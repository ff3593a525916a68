import NIOCore
import NIOWebSocket

/// Sends back each frame of a WebSocket.
final class FrameEcho: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        let reply = WebSocketFrame(fin: frame.fin, opcode: frame.opcode, data: frame.unmaskedData)
        context.write(wrapOutboundOut(reply), promise: nil)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        context.flush()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }
}
