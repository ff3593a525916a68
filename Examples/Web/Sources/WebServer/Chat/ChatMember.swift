internal import Logging
internal import NIOCore
internal import NIOWebSocket

/// A member of the chat, on its connection.
final class ChatMember: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame

    private let client: Client
    private var context: ChannelHandlerContext?
    private var isMember = false
    private var hasAnswered = true
    private var isClosing = false
    private var timer: RepeatedTask?

    /// How long a client has to close after it was asked to.
    private static let closeTime = TimeAmount.seconds(2)

    init(_ client: Client) {
        self.client = client
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        isMember = true
        client.site.chat.join(self)
        client.site.log.info("\(client.peer) joins the chat")
        // A member who has not read that much is not writable.
        let mark = ChannelOptions.Types.WriteBufferWaterMark(low: 1, high: client.limits.unreadBytes)
        try? context.channel.syncOptions?.setOption(.writeBufferWaterMark, value: mark)
        setTimer(TimeAmount(client.limits.idleTime))
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        leave()
        self.context = nil
    }

    func channelInactive(context: ChannelHandlerContext) {
        leave()
        context.fireChannelInactive()
    }

    private func leave() {
        timer?.cancel()
        guard isMember else { return }
        isMember = false
        client.site.chat.leave(self)
    }

    // MARK: Messages

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        let bytes = frame.unmaskedData
        // Only an extension, of which there is none, may set these.
        guard !frame.rsv1, !frame.rsv2, !frame.rsv3 else { return close(.protocolError) }
        switch frame.opcode {
        case .text where String(validating: bytes.readableBytesView, as: UTF8.self) == nil:
            close(.dataInconsistentWithMessage)
        case .text: if !isClosing { client.site.chat.post(bytes) }
        case .binary: close(.unacceptableData)
        case .ping: send(.pong, bytes)
        case .pong: hasAnswered = true
        case .connectionClose:
            var code = bytes
            close(code.readWebSocketErrorCode() ?? .normalClosure)
            context.close(promise: nil)
        default: break
        }
    }

    /// Sends a message of the chat.
    func deliver(_ text: ByteBuffer) {
        if !isClosing { send(.text, text) }
    }

    private func send(_ opcode: WebSocketOpcode, _ bytes: ByteBuffer) {
        guard let context else { return }
        guard context.channel.isWritable else {
            client.site.measures.countRefusal(.unreadBytes)
            return context.close(promise: nil)
        }
        context.writeAndFlush(wrapOutboundOut(WebSocketFrame(fin: true, opcode: opcode, data: bytes)), promise: nil)
    }

    // MARK: Ends

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is ChannelShouldQuiesceEvent { close(.goingAway) }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if let error = error as? NIOWebSocketFrameAggregator.Error {
            close(error == .accumulatedFrameSizeIsTooLarge ? .messageTooLarge : .protocolError)
        }
        context.close(promise: nil)
    }

    private func setTimer(_ interval: TimeAmount) {
        guard let context else { return }
        timer?.cancel()
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        timer = context.eventLoop.scheduleRepeatedTask(initialDelay: interval, delay: interval) { _ in
            bound.value.timeIsOver()
        }
    }

    /// Asks for a sign of life, or closes if the last one, or the client's end, has not come.
    private func timeIsOver() {
        guard hasAnswered, !isClosing else {
            context?.close(promise: nil)
            return
        }
        hasAnswered = false
        send(.ping, ByteBuffer())
    }

    /// Sends a reason to close, after which the client closes.
    private func close(_ reason: WebSocketErrorCode) {
        guard !isClosing else { return }
        var bytes = ByteBuffer()
        bytes.write(webSocketErrorCode: reason)
        send(.connectionClose, bytes)
        isClosing = true
        setTimer(Self.closeTime)
    }
}
