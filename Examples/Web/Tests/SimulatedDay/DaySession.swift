import NIOCore
import NIOWebSocket

/// A connection to the chat.
final class DaySession: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame

    private let member: DayMember
    private var last: String?
    private var own: (text: String, sent: NIODeadline)?
    private var silence: Scheduled<Void>?

    init(_ member: DayMember) {
        self.member = member
    }

    func handlerAdded(context: ChannelHandlerContext) {
        post(later: context)
        watch(context)
    }

    private func post(later context: ChannelHandlerContext) {
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: member.delay(upTo: 3_600)) {
            let (session, context) = bound.value
            guard context.channel.isActive else { return }
            session.post(context)
            session.post(later: context)
        }
    }

    private func post(_ context: ChannelHandlerContext) {
        guard own == nil else {
            return member.day.fail("\(own!.text) has not come back to its sender, who is connected")
        }
        let text = member.nextMessage()
        own = (text, context.eventLoop.now)
        send(.text, ByteBuffer(string: text), context)
    }

    private func send(_ opcode: WebSocketOpcode, _ bytes: ByteBuffer, _ context: ChannelHandlerContext) {
        let frame = WebSocketFrame(fin: true, opcode: opcode, maskKey: [1, 2, 3, 4], data: bytes)
        context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
    }

    /// Watches for silence: the daemon pings each minute, so silence means a cut link.
    private func watch(_ context: ChannelHandlerContext) {
        silence?.cancel()
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        silence = context.eventLoop.scheduleTask(in: .minutes(3)) { bound.value.close(promise: nil) }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        watch(context)
        let frame = unwrapInboundIn(data)
        switch frame.opcode {
        case .text:
            let text = String(buffer: frame.data)
            member.day.receive(text, after: last, by: member.name)
            last = text
            if own?.text == text { own = nil }
        case .ping: send(.pong, frame.data, context)
        case .connectionClose:
            send(.connectionClose, frame.data, context)
            context.close(promise: nil)
        default: break
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        silence?.cancel()
        member.join()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
