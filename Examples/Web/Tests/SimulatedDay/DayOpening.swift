import NIOCore
import NIOHTTP1

/// Requests the change to WebSocket.
final class DayOpening: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundOut = HTTPClientRequestPart

    private let member: DayMember
    private var hasClosed = false

    init(_ member: DayMember) {
        self.member = member
    }

    func channelActive(context: ChannelHandlerContext) {
        let headers: HTTPHeaders = ["host": "web", "content-length": "0"]
        let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/chat", headers: headers)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: .minutes(10)) {
            let (opening, context) = bound.value
            if context.channel.isActive, !opening.isRemoved { context.close(promise: nil) }
        }
    }

    private var isRemoved = false

    func handlerRemoved(context: ChannelHandlerContext) { isRemoved = true }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // A daemon that stops has no chat.
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) { member.join() }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
