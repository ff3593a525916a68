#if Adapters
internal import NIOCore
internal import NIOWebSocket
internal import RunLoopKit

/// The last handler of a connection that speaks WebSocket.
final class WebSocketHandler: ChannelDuplexHandler {
    typealias InboundIn = WebSocketFrame
    typealias OutboundIn = Never
    typealias OutboundOut = WebSocketFrame

    private let client: ServedClient
    private let socket: WebSocket
    private var context: ChannelHandlerContext?
    private var isReadHeld = false
    private var isFlushPosted = false
    /// True once the server has sent its close frame.
    private var isClosing = false
    private var isPinged = false
    /// The bytes of the client's last ping, until the answer can be sent.
    private var owedPong: ByteBuffer?
    private let deadline: Deadline

    init(_ client: ServedClient, _ socket: WebSocket) {
        (self.client, self.socket) = (client, socket)
        deadline = Deadline(on: client.loop, inModes: client.core.modes)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        deadline.reached = { [unowned self] in timeIsOver() }
        deadline.set(after: client.settings.limits.idleTime)
        let most = client.settings.limits.unreadBytes
        let mark = ChannelOptions.Types.WriteBufferWaterMark(low: max(1, most / 2), high: most)
        try? context.channel.syncOptions?.setOption(.writeBufferWaterMark, value: mark)
        socket.begin(self)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        deadline.reached = nil
        deadline.cancel()
        socket.end()
    }

    func channelInactive(context: ChannelHandlerContext) {
        deadline.cancel()
        socket.end()
        context.fireChannelInactive()
    }

    // MARK: Receiving

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        let bytes = frame.unmaskedData
        isPinged = false
        if !isClosing, isWritable { deadline.set(after: client.settings.limits.idleTime) }
        switch frame.opcode {
        case .connectionClose: closed(by: bytes)
        case _ where isClosing: break
        case .text:
            guard let text = String(validating: bytes.readableBytesView, as: UTF8.self) else { return close(1007) }
            socket.receive(.text(text))
        case .binary: socket.receive(.binary(bytes))
        // Only the last ping needs an answer.
        case .ping: isWritable ? write(.pong, bytes) : (owedPong = bytes)
        default: break
        }
    }

    func read(context: ChannelHandlerContext) {
        guard !socket.isFull || isClosing else { return isReadHeld = true }
        context.read()
    }

    func inputWasTaken() {
        guard isReadHeld, !socket.isFull else { return }
        isReadHeld = false
        context?.read()
    }

    // MARK: Sending

    var isWritable: Bool { context?.channel.isWritable ?? false }

    func write(_ message: WebSocket.Message) {
        guard !isClosing else { return }
        // Only output that the system does not take counts as unread.
        if !isWritable { flush() }
        guard isWritable else { return drop(.unreadBytes) }
        switch message {
        case .text(let text): write(.text, ByteBuffer(string: text))
        case .binary(let bytes): write(.binary, bytes)
        }
    }

    /// Writes a frame, which is sent with the others of this pass.
    private func write(_ opcode: WebSocketOpcode, _ bytes: ByteBuffer) {
        guard let context else { return }
        context.write(wrapOutboundOut(WebSocketFrame(fin: true, opcode: opcode, data: bytes)), promise: nil)
        guard !isFlushPosted else { return }
        isFlushPosted = true
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        context.eventLoop.execute { bound.value.flush() }
    }

    private func flush() {
        isFlushPosted = false
        context?.flush()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if !isClosing {
            let limits = client.settings.limits
            deadline.set(after: isWritable ? limits.idleTime : limits.stallTime)
        }
        if isWritable {
            if let bytes = owedPong.take() { write(.pong, bytes) }
            socket.drained()
        }
        context.fireChannelWritabilityChanged()
    }

    // MARK: The end

    /// Answers the client's close frame, and closes.
    private func closed(by bytes: ByteBuffer) {
        socket.inputEnded(bytes.getInteger(at: bytes.readerIndex, as: UInt16.self))
        if !isClosing { close(WebSocketErrorCode(answering: bytes)) }
        context?.close(promise: nil)
    }

    func close(_ code: UInt16) { close(WebSocketErrorCode(codeNumber: Int(code))) }

    /// Sends a status, after which the client closes.
    private func close(_ reason: WebSocketErrorCode) {
        guard !isClosing else { return }
        var bytes = ByteBuffer()
        bytes.write(webSocketErrorCode: reason)
        write(.connectionClose, bytes)
        flush()
        isClosing = true
        socket.inputEnded(nil)
        deadline.set(after: ConnectionHandler.grace)
        inputWasTaken()
    }

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

    /// Closes the connection of a client that has reached a limit.
    private func drop(_ limit: HTTPServer.Limit) {
        (socket.limit, isClosing) = (limit, true)
        socket.inputEnded(nil)
        context?.close(promise: nil)
    }

    /// Requests a sign of life, or closes if the previous one, or the client's end, has not come.
    private func timeIsOver() {
        guard isWritable || isClosing else { return drop(.stallTime) }
        // A client that is not read cannot answer.
        guard !isPinged || isReadHeld, !isClosing else {
            context?.close(promise: nil)
            return
        }
        isPinged = true
        deadline.set(after: client.settings.limits.idleTime)
        write(.ping, ByteBuffer())
    }
}
#endif
