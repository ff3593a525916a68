#if Adapters
internal import HTTPTypes
internal import NIOCore
internal import NIOHTTP1
internal import NIOTLS
internal import RunLoopKit

/// The first handler of a connection, which finds the version of HTTP, limits the time between requests and of their
/// heads, stops reading from a client that does not read, and closes without cutting off the last answer.
final class ConnectionHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    private enum State {
        /// The version of HTTP is not known.
        case fresh
        /// HTTP/1.1, between two requests.
        case idle
        /// A part of a request's head has arrived.
        case head
        /// A request is in progress.
        case request
        /// HTTP/2, whose handlers limit the times.
        case streams
        /// Another protocol, whose handlers limit the times.
        case upgraded
        /// The output has ended; the client has some time to read it. If the socket closed before all input was read,
        /// the system would reset the connection, and the client might lose the end of the answer.
        case closing
    }

    private let client: ServedClient
    private var state = State.fresh
    private var firstBytes = ByteBuffer()
    /// True if the present request is the last one.
    private(set) var isQuiescing = false
    private var isInputOver = false
    private var isReadHeld = false
    /// True if the later handlers have asked for input that has not come.
    private var isReadWanted = false
    /// Input that came while a request was answered.
    private var ahead: ByteBuffer?
    private let deadline: Deadline

    /// The time that a client has, at a stop, to send one more request, which may be under way; at the end to read; and
    /// on a stream that was answered early to end its body.
    static let grace = Duration.seconds(1)

    init(_ client: ServedClient) {
        self.client = client
        deadline = Deadline(on: client.loop, inModes: client.core.modes)
    }

    // MARK: Input

    func channelActive(context: ChannelHandlerContext) {
        setDeadline(after: client.settings.limits.headTime)
        context.fireChannelActive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch state {
        case .fresh: detectVersion(unwrapInboundIn(data), context)
        case .idle:
            state = .head
            isReadWanted = false
            context.fireChannelRead(data)
            // Nearly always, the whole head has come.
            if state == .head { setDeadline(after: client.settings.limits.headTime) }
        case .request where !isReadWanted: ahead = unwrapInboundIn(data)
        case .head, .request, .streams, .upgraded:
            isReadWanted = false
            context.fireChannelRead(data)
        case .closing: break
        }
    }

    // Also at the end of the read in which the connection has begun to close: the handlers of HTTP/2 keep the streams that
    // had input, and with them the whole connection, until then.
    func channelReadComplete(context: ChannelHandlerContext) {
        context.fireChannelReadComplete()
        if state == .closing { context.read() }
    }

    // Further input would be answered, and the answers would pile up.
    func read(context: ChannelHandlerContext) {
        guard context.channel.isWritable || state == .closing else { return isReadHeld = true }
        isReadWanted = true
        guard ahead != nil else { return context.read() }
        // Not at once, because the later handlers are in the middle of an answer.
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        context.eventLoop.execute {
            let (handler, context) = bound.value
            guard let bytes = handler.ahead else { return }
            handler.ahead = nil
            handler.channelRead(context: context, data: handler.wrapInboundOut(bytes))
            handler.channelReadComplete(context: context)
            // As a channel does after each of its own reads. Otherwise what comes after these bytes would never be read.
            if context.channel.isActive { context.channel.read() }
        }
    }

    /// Reads although no later handler wants input, because the client may go while its request is answered. If it sends a
    /// further request instead, that is kept for later, and no more is read.
    func readAhead() {
        guard state == .request, ahead == nil else { return }
        context?.read()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable, isReadHeld {
            isReadHeld = false
            read(context: context)
        }
        context.fireChannelWritabilityChanged()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case TLSUserEvent.handshakeCompleted(let version):
            configure(isHTTP2: version == "h2", context)
        case is ChannelShouldQuiesceEvent: quiesce(context)
        case ChannelEvent.inputClosed:
            isInputOver = true
            switch state {
            // The client may still read the answer.
            case .request: context.fireUserInboundEventTriggered(event)
            case .closing: context.close(promise: nil)
            default: close(context: context, mode: .all, promise: nil)
            }
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    // MARK: Version

    private func detectVersion(_ bytes: ByteBuffer, _ context: ChannelHandlerContext) {
        firstBytes.writeImmutableBuffer(bytes)
        // The first bytes of an HTTP/2 client, which are no method of HTTP/1.1.
        let preface = "PRI ".utf8
        let common = zip(firstBytes.readableBytesView, preface).prefix { $0 == $1 }.count
        guard common == preface.count || common < firstBytes.readableBytes else { return }
        let bytes = firstBytes
        firstBytes = ByteBuffer()
        configure(isHTTP2: common == preface.count, context)
        channelRead(context: context, data: wrapInboundOut(bytes))
    }

    private func configure(isHTTP2: Bool, _ context: ChannelHandlerContext) {
        do {
            if isHTTP2 {
                state = .streams
                try context.pipeline.syncOperations.addHTTP2(client, self)
                if isQuiescing { quiesce(context) } else { limitRest() }
            } else {
                state = .idle
                try context.pipeline.syncOperations.addHTTP1(client, self)
            }
        } catch {
            context.fireErrorCaught(error)
            context.close(mode: .all, promise: nil)
        }
    }

    // MARK: Requests of HTTP/1.1

    private var context: ChannelHandlerContext?

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        deadline.reached = { [unowned self] in timeIsOver() }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        deadline.reached = nil
        deadline.cancel()
    }

    /// Notes that the head of a request is complete.
    func requestBegan() {
        guard state != .closing else { return }
        state = .request
        deadline.pause()
    }

    /// Notes that a request is complete and answered.
    func requestEnded() {
        guard state == .request else { return }
        state = .idle
        setDeadline(after: client.settings.limits.idleTime)
    }

    /// Notes that the connection speaks another protocol than HTTP from now on.
    func wasUpgraded() {
        guard state != .closing else { return }
        state = .upgraded
        deadline.cancel()
    }

    // MARK: Answers of HTTP/1.1

    /// What has been written of answers, until it is given to the channel. The handlers between this one and the exchanges' do
    /// not see it.
    var output = AnswerBytes()

    /// Writes a piece of a body, which is not empty.
    func write(_ bytes: ByteBuffer) {
        let (collected, piece) = output.write(bytes)
        if let collected { pass(collected) }
        if let piece { pass(piece) }
    }

    /// Gives the collected bytes to the channel.
    func handOver() {
        if let bytes = output.take() { pass(bytes) }
    }

    /// Sends what has been written.
    ///
    /// - Parameter promise: fulfilled when the client's system has all of it.
    func flush(_ promise: EventLoopPromise<Void>? = nil) {
        handOver()
        if let promise { pass(ByteBuffer(), promise) }
        context?.flush()
    }

    private func pass(_ bytes: ByteBuffer, _ promise: EventLoopPromise<Void>? = nil) {
        context?.write(wrapOutboundOut(.byteBuffer(bytes)), promise: promise)
    }

    // MARK: Streams of HTTP/2

    private var streams = 0

    func streamBegan() {
        streams += 1
        // Not before: streams that begin after `GOAWAY` are refused without an answer.
        if client.refusal != nil, !isQuiescing, let context { quiesce(context) }
    }

    func streamEnded() {
        streams -= 1
        limitRest()
    }

    /// Limits the time of a client without a stream: the idle time, or, of one that is told the end, the time to agree. A
    /// connection that closes, with which its streams end, has its time already.
    private func limitRest() {
        guard streams == 0, state == .streams else { return }
        setDeadline(after: isEnding ? Self.grace : client.settings.limits.idleTime)
    }

    private var isEnding: Bool { isQuiescing || client.refusal != nil }

    // MARK: Ends

    private func quiesce(_ context: ChannelHandlerContext) {
        isQuiescing = true
        switch state {
        case .fresh, .idle: setDeadline(after: Self.grace)
        case .request, .upgraded: context.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
        case .streams:
            context.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
            limitRest()
        case .head, .closing: break
        }
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard mode == .all, context.channel.isActive, state != .closing else {
            return context.close(mode: mode, promise: promise)
        }
        state = .closing
        context.channel.closeFuture.cascade(to: promise)
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        guard !isInputOver else {
            // Nothing can be lost in a reset, but earlier output must be sent.
            setDeadline(after: client.settings.limits.stallTime)
            let sent = context.writeAndFlush(wrapOutboundOut(.byteBuffer(ByteBuffer())))
            return sent.whenComplete { _ in bound.value.close(promise: nil) }
        }
        setDeadline(after: Self.grace)
        // The last GOAWAY has been written within a read, whose end flushes; but no handler hears of that end any more.
        context.flush()
        context.close(mode: .output).whenFailure { _ in bound.value.close(promise: nil) }
        context.read()
    }

    func channelInactive(context: ChannelHandlerContext) {
        deadline.cancel()
        context.fireChannelInactive()
    }

    // MARK: Times

    private func setDeadline(after time: Duration) {
        deadline.set(after: time)
    }

    private func timeIsOver() {
        guard let context else { return }
        switch state {
        case .fresh where firstBytes.readableBytes == 0, .idle: close(context: context, mode: .all, promise: nil)
        case .fresh, .head:
            let refusal = HTTPServer.Refusal.reached(.headTime)
            client.note(refusal)
            // There is no request that the later handlers could answer.
            let text = """
                HTTP/1.1 \(refusal.status.code) \(refusal.status.reasonPhrase)\r\nConnection: close\r\n\
                Content-Length: 0\r\n\r\n
                """
            context.writeAndFlush(wrapOutboundOut(.byteBuffer(ByteBuffer(string: text))), promise: nil)
            close(context: context, mode: .all, promise: nil)
        case .closing: context.close(promise: nil)
        case .streams where streams == 0:
            if isEnding { close(context: context, mode: .all, promise: nil) } else { quiesce(context) }
        case .request, .streams, .upgraded: break
        }
    }
}
#endif
