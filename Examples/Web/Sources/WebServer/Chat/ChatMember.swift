internal import Logging
internal import NIOCore
internal import NIOWebSocket

/// A member of the chat, on its connection.
///
/// Input beyond the limit waits, and the member is not read meanwhile.
final class ChatMember: ChannelDuplexHandler {
    typealias InboundIn = WebSocketFrame
    typealias OutboundIn = Never
    typealias OutboundOut = WebSocketFrame

    private let client: Client
    private var context: ChannelHandlerContext?
    private var isMember = false
    private var hasAnswered = true
    private var isClosing = false
    private var timer: RepeatedTask?
    /// The frames that came too fast.
    private var waiting = CircularBuffer<WebSocketFrame>()
    /// The time when the taken frames have been paid for.
    private var paid = NIODeadline.uptimeNanoseconds(0)
    private var turn: Scheduled<Void>?
    private var isReadHeld = false
    private(set) var isUnflushed = false

    /// The time that a client has to close after it was asked to.
    private static let closeTime = TimeAmount.seconds(2)

    init(_ client: Client) {
        self.client = client
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        isMember = true
        client.site.chat.join(self)
        client.site.log.info("\(client.peer) joins the chat")
        // A member with more unread bytes is not writable.
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
        turn?.cancel()
        waiting.removeAll()
        guard isMember else { return }
        isMember = false
        client.site.chat.leave(self)
    }

    // MARK: The rate

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        guard !isClosing else { return take(frame) }
        waiting.append(frame)
        if turn == nil { takeWaiting() }
    }

    func read(context: ChannelHandlerContext) {
        if waiting.isEmpty { context.read() } else { isReadHeld = true }
    }

    /// Takes frames at the permitted rate, the frames of a second at once.
    private func takeWaiting() {
        turn = nil
        while let context, let frame = waiting.first {
            let now = context.eventLoop.now
            guard paid <= now + .seconds(1) else {
                let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
                turn = context.eventLoop.scheduleTask(deadline: paid - .seconds(1)) { bound.value.takeWaiting() }
                return
            }
            // All members receive its bytes.
            let cost = Int64(1 + frame.length / 1024)
            paid = max(paid, now) + .nanoseconds(cost * 1_000_000_000 / Int64(client.limits.messagesPerSecond))
            waiting.removeFirst()
            take(frame)
        }
        readIfHeld()
    }

    private func readIfHeld() {
        guard isReadHeld else { return }
        isReadHeld = false
        context?.read()
    }

    // MARK: Messages

    private func take(_ frame: WebSocketFrame) {
        let bytes = frame.unmaskedData
        switch frame.opcode {
        case .connectionClose:
            close(WebSocketErrorCode(answering: bytes))
            context?.close(promise: nil)
        case .pong: hasAnswered = true
        case _ where isClosing: break
        case .text where String(validating: bytes.readableBytesView, as: UTF8.self) == nil:
            close(.dataInconsistentWithMessage)
        case .text: client.site.chat.post(bytes)
        case .binary: close(.unacceptableData)
        case .ping: send(.pong, bytes)
        default: break
        }
    }

    /// Sends a message of the chat.
    func deliver(_ text: ByteBuffer) {
        if !isClosing { send(.text, text) }
    }

    /// Writes a frame, which the room sends with the others of this pass.
    private func send(_ opcode: WebSocketOpcode, _ bytes: ByteBuffer) {
        guard let context else { return }
        // Only output that the system does not accept counts as unread.
        if !context.channel.isWritable { flush() }
        guard context.channel.isWritable else {
            client.site.measures.countRefusal(.unreadBytes)
            isClosing = true
            return context.close(promise: nil)
        }
        context.write(wrapOutboundOut(WebSocketFrame(fin: true, opcode: opcode, data: bytes)), promise: nil)
        guard !isUnflushed else { return }
        isUnflushed = true
        client.site.chat.flushLater(self)
    }

    /// Sends the written frames.
    func flush() {
        isUnflushed = false
        context?.flush()
    }

    // MARK: Ends

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is ChannelShouldQuiesceEvent { close(.goingAway) }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        // The decoder's error, which is answered already.
        case is NIOWebSocketError: return
        case NIOWebSocketFrameAggregator.Error.accumulatedFrameSizeIsTooLarge: close(.messageTooLarge)
        case is NIOWebSocketFrameAggregator.Error, is FrameRules.Broken: close(.protocolError)
        default: break
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

    /// Requests a sign of life, or closes if the previous one, or the client's end, has not come.
    private func timeIsOver() {
        guard hasAnswered || !waiting.isEmpty, !isClosing else {
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
        flush()
        isClosing = true
        setTimer(Self.closeTime)
        turn?.cancel()
        waiting.removeAll()
        readIfHeld()
    }
}
