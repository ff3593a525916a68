#if Adapters
internal import NIOCore
internal import NIOWebSocket
internal import RunLoopKit

extension ChannelPipeline.SynchronousOperations {
    /// Adds the handlers of a WebSocket behind those that decode and encode its frames.
    func addWebSocket(_ socket: WebSocket) throws {
        let terms = socket.terms
        try addHandlers([
            FrameRules(areMasked: !terms.isClient),
            NIOWebSocketFrameAggregator(
                minNonFinalFragmentSize: 0, maxAccumulatedFrameCount: 1_024,
                maxAccumulatedFrameSize: terms.messageBytes),
            WebSocketHandler(socket),
        ])
    }
}

/// The last handler of a connection that speaks WebSocket.
final class WebSocketHandler: ChannelDuplexHandler, DrainingHandler {
    typealias InboundIn = WebSocketFrame
    typealias OutboundIn = Never
    typealias OutboundOut = WebSocketFrame

    private let terms: WebSocketTerms
    private let socket: WebSocket
    private(set) var context: ChannelHandlerContext?
    private var isReadHeld = false
    private var isFlushPosted = false
    /// True once this side has sent its close frame.
    private var isClosing = false
    private var isPinged = false
    /// The bytes of the peer's last ping, until the answer can be sent.
    private var owedPong: ByteBuffer?
    private let deadline: Deadline

    /// The time that a peer has to answer a close.
    private static let closeTime = Duration.seconds(1)

    init(_ socket: WebSocket) {
        (self.socket, terms) = (socket, socket.terms)
        deadline = Deadline(on: terms.loop, inModes: terms.modes)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        deadline.reached = { [unowned self] in timeIsOver() }
        deadline.set(after: terms.idleTime)
        let most = terms.unreadBytes
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
        if !isClosing, isWritable { deadline.set(after: terms.idleTime) }
        switch frame.opcode {
        case .connectionClose: closed(by: bytes)
        case _ where isClosing: break
        case .text:
            guard let text = String(validating: bytes.readableBytesView, as: UTF8.self) else {
                return close(.dataInconsistentWithMessage, isBroken: true)
            }
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
        if !isWritable { duringWrite { flush() } }
        guard isWritable else { return drop(.unread) }
        switch message {
        case .text(let text): write(.text, ByteBuffer(string: text))
        case .binary(let bytes): write(.binary, bytes)
        }
    }

    /// Writes a frame, which is sent with the others of this pass.
    private func write(_ opcode: WebSocketOpcode, _ bytes: ByteBuffer) {
        guard let context else { return }
        // A client masks its frames, so that no cache between takes them for HTTP.
        let mask = terms.isClient ? WebSocketMaskingKey.random(using: &terms.loop.randomNumbers) : nil
        let frame = WebSocketFrame(fin: true, opcode: opcode, maskKey: mask, data: bytes)
        context.write(wrapOutboundOut(frame), promise: nil)
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
            deadline.set(after: isWritable ? terms.idleTime : terms.stallTime)
        }
        if isWritable {
            if let bytes = owedPong.take() { write(.pong, bytes) }
            peerHasRead()
        }
        context.fireChannelWritabilityChanged()
    }

    var drainTurn = DrainTurn()

    func drained() { socket.drained() }

    // MARK: The end

    /// Answers the peer's close frame, and closes.
    private func closed(by bytes: ByteBuffer) {
        let code = bytes.getInteger(at: bytes.readerIndex, as: UInt16.self)
        let answer = WebSocketErrorCode(answering: bytes)
        let isBroken = bytes.readableBytes > 0 && UInt16(webSocketErrorCode: answer) != code
        if !isBroken { socket.inputEnded(code) }
        close(answer, isBroken: isBroken)
        context?.close(promise: nil)
    }

    func close(_ code: UInt16) { close(WebSocketErrorCode(codeNumber: Int(code)), isBroken: false) }

    /// Sends a status, after which the peer closes.
    ///
    /// - Parameter isBroken: whether the peer has broken a rule.
    private func close(_ reason: WebSocketErrorCode, isBroken: Bool) {
        guard !isClosing else { return }
        var bytes = ByteBuffer()
        bytes.write(webSocketErrorCode: reason)
        write(.connectionClose, bytes)
        flush()
        isClosing = true
        socket.inputEnded(nil, isBroken ? .broken(UInt16(webSocketErrorCode: reason)) : nil)
        deadline.set(after: Self.closeTime)
        inputWasTaken()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is ChannelShouldQuiesceEvent { close(.goingAway, isBroken: false) }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        case NIOWebSocketError.invalidFrameLength, NIOWebSocketFrameAggregator.Error.accumulatedFrameSizeIsTooLarge:
            close(.messageTooLarge, isBroken: true)
        case is NIOWebSocketError, is NIOWebSocketFrameAggregator.Error, is FrameRules.Broken:
            close(.protocolError, isBroken: true)
        default: break
        }
        context.close(promise: nil)
    }

    /// Closes the connection of a peer that was lost.
    private func drop(_ loss: WebSocket.Loss) {
        isClosing = true
        socket.inputEnded(nil, loss)
        context?.close(promise: nil)
    }

    /// Requests a sign of life, or closes if the previous one, or the peer's end, has not come.
    private func timeIsOver() {
        guard isWritable || isClosing else { return drop(.stalled) }
        // A peer that is not read cannot answer.
        guard !isPinged || isReadHeld, !isClosing else { return drop(.silent) }
        isPinged = true
        deadline.set(after: terms.idleTime)
        write(.ping, ByteBuffer())
    }
}
#endif
