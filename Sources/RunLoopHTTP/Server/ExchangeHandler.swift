#if Adapters
internal import HTTPTypes
internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTP2
internal import NIOWebSocket
internal import RunLoopKit
@_spi(Ports) internal import RunLoopNIO
internal import RunLoopTLS

/// Serves the exchanges of an HTTP/1.1 connection, one after another, or the single exchange of an HTTP/2 stream.
///
/// The handler reads as fast as the program takes the body, and writes as fast as the client reads.
final class ExchangeHandler: ChannelDuplexHandler, RemovableChannelHandler, BodyChannel {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundIn = Never
    typealias OutboundOut = HTTPServerResponsePart

    let client: ServedClient
    /// The connection of HTTP/1.1; `nil` for a stream of HTTP/2.
    private let connection: ConnectionHandler?
    private var context: ChannelHandlerContext?
    private var exchange: HTTPExchange?
    private var version = HTTPVersion.http1_1
    private var isReadWanted = false
    private var isFlushWanted = false
    /// The number of calls under way whose output is flushed at the end of the outermost.
    private var depth = 0
    /// True if nothing more is served.
    private var isLast = false
    private var lastProgress: RunLoop.Instant
    private let timeout: Deadline

    init(_ client: ServedClient, _ connection: ConnectionHandler?) {
        (self.client, self.connection, lastProgress) = (client, connection, client.loop.now)
        timeout = Deadline(on: client.loop, inModes: client.core.modes)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        timeout.reached = { [unowned self] in deadlinePassed() }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        timeout.reached = nil
        timeout.cancel()
        exchangeEnded(.closed)
    }

    /// The TLS session below the connection.
    var tls: TLSSession? { context.flatMap { ($0.channel.parent ?? $0.channel).tls } }

    // MARK: Receiving

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isLast else { return }
        depth += 1
        switch unwrapInboundIn(data) {
        // The head of a request that did not become a WebSocket comes when that is decided.
        case .head where due == .head: due = .nothing
        case .head(let head): begin(head)
        case .body(let bytes):
            // After an early answer, only the client's reading is progress.
            if exchange?.discardsInput == false { progress() }
            exchange?.receive(bytes)
        case .end(let trailers):
            progress()
            exchange?.receiveEnd(trailers.map { HTTPFields($0) })
            if due == .service {
                due = .nothing
                serve()
            }
            finishIfAnswered()
            // The program answers later.
            if exchange != nil { connection?.readAhead() }
        }
        depth -= 1
        flushIfWanted()
    }

    /// The decision about a request for a WebSocket, until the program has answered it.
    private var upgrade: EventLoopPromise<HTTPHeaders?>?
    private var socket: WebSocket?
    private enum Due {
        case nothing
        /// The head of the present exchange is yet to come.
        case head
        /// The program has not been asked for an answer yet.
        case service
    }
    private var due = Due.nothing

    /// Begins an exchange that may make the connection a WebSocket.
    ///
    /// - Returns: a future of the fields of the answer; `nil` if the exchange is served as any other.
    func considerUpgrade(_ head: HTTPRequestHead, on eventLoop: any EventLoop) -> EventLoopFuture<HTTPHeaders?> {
        let promise = eventLoop.makePromise(of: HTTPHeaders?.self)
        (upgrade, due) = (promise, .head)
        begin(head)
        return promise.futureResult
    }

    /// Serves the exchange as any other.
    private func declineUpgrade() {
        upgrade.take()?.succeed(nil)
    }

    /// Makes the connection a WebSocket.
    ///
    /// - Returns: whether the request asked for that.
    func accept(_ socket: WebSocket, of exchange: HTTPExchange) -> Bool {
        guard self.exchange === exchange, let upgrade = upgrade.take() else { return false }
        (self.socket, exchange.status, isLast) = (socket, .switchingProtocols, true)
        socket.ended = { [client, version] limit in
            exchange.limit = limit
            client.note(exchange, version, isCutOff: limit != nil)
            exchange.cancelTask()
        }
        exchangeEnded(nil)
        upgrade.succeed(socket.subprotocol.map { ["Sec-WebSocket-Protocol": $0] } ?? [:])
        return true
    }

    /// Adds the handlers of a WebSocket, when the client has been told.
    func upgraded(_ channel: any Channel) throws {
        guard let socket = socket.take() else { return }
        let limits = client.settings.limits
        let terms = WebSocketTerms(
            loop: client.loop, modes: client.core.modes, isClient: false, idleTime: limits.idleTime,
            stallTime: limits.stallTime, messageBytes: limits.messageBytes, unreadBytes: limits.unreadBytes)
        try channel.pipeline.syncOperations.addWebSocket(socket, terms)
    }

    private func begin(_ head: HTTPRequestHead) {
        connection?.requestBegan()
        version = head.version
        let request = HTTPRequest(head)
        let exchange = HTTPExchange(
            request ?? .unreadable, self,
            announcedLength: head.headers.first(name: "content-length").flatMap { Int($0) },
            expectsContinue: isPersistent && head.expectsContinue,
            closes: connection != nil && (!head.isKeepAlive || head.stopsDecoder || client.refusal != nil))
        self.exchange = exchange
        lastProgress = client.loop.now
        if let limit = client.refusal {
            exchange.fail(HTTPServer.Refusal.reached(limit))
        } else if let refusal = connection != nil ? head.refusal : nil {
            exchange.closes = true
            exchange.fail(refusal)
        } else if request == nil {
            exchange.closes = connection != nil
            exchange.fail(HTTPServer.Refusal(.badRequest, "the host, the method or a name is not one"))
        } else if connection == nil || head.hasBody || head.stopsDecoder {
            serve()
        } else {
            // The end is the next part. When it has come, the answer needs no thought of a body.
            due = .service
        }
        if self.exchange === exchange { phaseChanged() }
    }

    private func serve() {
        guard let exchange else { return }
        client.core.serve(exchange, on: client.loop)
    }

    func read(context: ChannelHandlerContext) {
        // The rest of a long body stays with its sender.
        guard connection != nil || !isLast else { return }
        guard exchange?.body.isFull != true else { return isReadWanted = true }
        context.read()
    }

    /// Notes that the program has taken what had come of the body.
    func inputWasTaken() {
        progress()
        guard isReadWanted else { return }
        isReadWanted = false
        context?.read()
    }

    // MARK: Answering

    /// True for HTTP/1.1 and HTTP/2, whose connections stay open, and whose bodies need no length.
    private var isPersistent: Bool { version.major > 1 || version.minor > 0 }

    var isWritable: Bool { context?.channel.isWritable ?? false }

    func sendContinue() {
        guard let context else { return }
        let head = HTTPResponseHead(version: version, status: .continue)
        context.writeAndFlush(wrapOutboundOut(.head(head)), promise: nil)
    }

    func sendHead(_ response: HTTPResponse, of exchange: HTTPExchange, length: Int?) {
        declineUpgrade()
        guard let context else { return }
        // A client that waits for the permission to send its body may send it or not.
        if exchange.owesContinue { exchange.closes = true }
        var headers = HTTPHeaders(response.headerFields)
        let status = response.status
        let hasBody = status.hasBody
        if hasBody, let length {
            headers.add(name: "Content-Length", value: String(length))
        } else if hasBody, connection != nil {
            if !isPersistent {
                exchange.closes = true
            } else if exchange.request.method != .head {
                headers.add(name: "Transfer-Encoding", value: "chunked")
            }
        }
        if !headers.contains(name: "date") { headers.add(name: "Date", value: client.date.now(on: client.loop)) }
        if connection != nil {
            if exchange.closes {
                headers.add(name: "Connection", value: "close")
            } else if !isPersistent {
                headers.add(name: "Connection", value: "keep-alive")
            }
        }
        let head = HTTPResponseHead(
            version: version,
            status: HTTPResponseStatus(statusCode: status.code, reasonPhrase: status.reasonPhrase),
            headers: headers)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        progress()
        flushSoon()
    }

    func send(_ bytes: ByteBuffer) {
        guard let context, exchange?.sendsBody == true else { return }
        context.write(wrapOutboundOut(.body(.byteBuffer(bytes))), promise: nil)
        progress()
        flushSoon()
    }

    /// Completes an answer: at once if the client reads and the connection stays open, so that the next request of HTTP/1.1
    /// begins. Otherwise, when the client has received it: a client that does not read has one answer in memory, and
    /// stalls.
    func sendEnd(of exchange: HTTPExchange, _ trailers: HTTPFields?) {
        guard let context else { return }
        guard exchange.closes || !context.channel.isWritable else { return conclude(exchange, trailers) }
        progress()
        let bound = NIOLoopBound((self, exchange, trailers), eventLoop: context.eventLoop)
        context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(ByteBuffer())))).whenComplete { result in
            let (handler, exchange, trailers) = bound.value
            switch result {
            case .success: handler.conclude(exchange, trailers)
            case .failure: handler.cutOff(exchange)
            }
        }
    }

    private func conclude(_ exchange: HTTPExchange, _ trailers: HTTPFields?) {
        guard context != nil, self.exchange === exchange else { return }
        let end = End(trailers: trailers, closes: exchange.closes)
        isConcluded = true
        // First, because a next request that has already arrived begins within the write of the end.
        finishIfAnswered()
        // The rest of the body has its time.
        if self.exchange === exchange { progress() }
        guard case .idle = ends else { return ends = .writing(next: end) }
        depth += 1
        write(end)
        depth -= 1
        flushIfWanted()
    }

    /// Writes the end of an answer, and then those of the answers to requests that began within the write. Each request within
    /// the one before it would take a piece of the stack, and a client may send thousands at once.
    private func write(_ end: End) {
        var next: End? = end
        while let end = next, let context {
            ends = .writing(next: nil)
            context.write(wrapOutboundOut(.end(end.trailers.map { HTTPHeaders($0) })), promise: nil)
            flushSoon()
            if end.closes { close() }
            next = if case .writing(let owed) = ends { owed } else { nil }
        }
        ends = .idle
    }

    private struct End {
        let trailers: HTTPFields?
        let closes: Bool
    }
    private enum Ends {
        case idle
        /// An end is being written; `next` is that of the request that has begun within the write.
        case writing(next: End?)
    }
    private var ends = Ends.idle

    /// True if the end of the present answer has been written.
    private var isConcluded = false

    /// Makes room for the next request when this one is complete and answered.
    private func finishIfAnswered() {
        guard let exchange, isConcluded, exchange.body.isComplete || exchange.closes else { return }
        isLast = exchange.closes || connection == nil && exchange.body.isComplete
        exchangeEnded(nil)
        if connection == nil {
            // The end of a stream may wait for the client's window.
            timeout.set(after: client.settings.limits.stallTime)
        } else if !isLast {
            connection?.requestEnded()
        }
    }

    /// Gives up an answer that cannot be completed.
    func cutOff(_ exchange: HTTPExchange) {
        guard let context, self.exchange === exchange else { return }
        exchangeEnded(.closed)
        isLast = true
        // The client receives the part that there is. A reset drops the bytes of its stream that have not been sent.
        guard connection == nil, context.channel.isWritable else { return reset(context) }
        timeout.set(after: ConnectionHandler.grace)
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(ByteBuffer())))).whenComplete { _ in
            let (handler, context) = bound.value
            handler.reset(context)
        }
    }

    private func reset(_ context: ChannelHandlerContext) {
        if connection == nil {
            context.pipeline.syncOperations.resetStream(.internalError)
        } else {
            context.flush()
        }
        context.close(promise: nil)
    }

    private func exchangeEnded(_ error: HTTPServer.ExchangeError?) {
        guard let exchange else { return }
        if error != nil { declineUpgrade() }
        (self.exchange, isConcluded) = (nil, false)
        if due == .service { due = .nothing }
        timeout.pause()
        // A WebSocket is over when its connection closes.
        if socket == nil { client.note(exchange, version, isCutOff: error != nil) }
        exchange.end(error)
    }

    // MARK: Flushing

    private func flushSoon() {
        isFlushWanted = true
        if depth == 0 { flushIfWanted() }
    }

    private func flushIfWanted() {
        guard depth == 0, isFlushWanted else { return }
        isFlushWanted = false
        context?.flush()
    }

    func flush() { flushIfWanted() }

    /// Sends what `body` writes together.
    func together(_ body: () -> Void) {
        depth += 1
        body()
        depth -= 1
        flushIfWanted()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        progress()
        if context.channel.isWritable { exchange?.drained() }
        context.fireChannelWritabilityChanged()
    }

    // MARK: Ends

    private func close() {
        guard let context else { return }
        flushIfWanted()
        guard connection == nil else { return context.close(promise: nil) }
        // A short body ends its stream by itself. Some clients take a reset for a failure if it comes with the answer.
        lastProgress = client.loop.now
        timeout.set(after: ConnectionHandler.grace)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case ChannelEvent.inputClosed? = event as? ChannelEvent else {
            return context.fireUserInboundEventTriggered(event)
        }
        // The last request, if there is one.
        if let exchange { exchange.closes = true } else { context.close(promise: nil) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // A request that asks for a WebSocket in vain is answered as any other.
        if error is NIOWebSocketUpgradeError { return }
        guard let error = error as? HTTPParserError else { return context.close(promise: nil) }
        // The decoder reads no more.
        if exchange == nil {
            guard !isLast else { return }
            connection?.requestBegan()
            exchange = HTTPExchange(
                .unreadable, self, announcedLength: nil, expectsContinue: false, closes: true)
        }
        exchange?.closes = true
        exchange?.fail(
            error == .headerOverflow
                ? HTTPServer.Refusal.reached(.headBytes) : HTTPServer.Refusal(.badRequest, "\(error)"))
    }

    func channelInactive(context: ChannelHandlerContext) {
        exchangeEnded(.closed)
        timeout.cancel()
        // The connection has closed before it spoke WebSocket.
        socket.take()?.end()
        context.fireChannelInactive()
    }

    // MARK: Times

    private func progress() {
        lastProgress = client.loop.now
        phaseChanged()
    }

    /// Sets the deadline of the present phase.
    func phaseChanged() {
        // The body of a request that asks for a WebSocket comes when that is decided.
        if exchange?.waitsForInput == true { declineUpgrade() }
        guard let exchange, let (time, _) = phase(of: exchange) else { return timeout.pause() }
        timeout.set(lastProgress + time)
    }

    private func phase(of exchange: HTTPExchange) -> (Duration, HTTPServer.Limit)? {
        let limits = client.settings.limits
        switch exchange.answer {
        case .awaited: return exchange.waitsForInput ? (limits.stallTime, .stallTime) : (limits.answerTime, .answerTime)
        // A program that has nothing to write for the moment may take its time.
        case .body: return isWritable ? nil : (limits.stallTime, .stallTime)
        case .ended: return (limits.stallTime, .stallTime)
        }
    }

    private func deadlinePassed() {
        guard let exchange else {
            context?.pipeline.syncOperations.resetStream(.noError)
            return
        }
        guard let (_, limit) = phase(of: exchange) else { return }
        exchange.limit = limit
        if case .awaited = exchange.answer {
            exchange.fail(HTTPServer.Refusal.reached(limit))
        } else if connection != nil || !isConcluded {
            cutOff(exchange)
        } else {
            context?.pipeline.syncOperations.resetStream(.noError)
        }
    }
}

extension HTTPExchange {
    /// True if the client receives the body of the answer.
    fileprivate var sendsBody: Bool {
        request.method != .head && status?.hasBody ?? false
    }
}

extension HTTPResponse.Status {
    /// True if an answer with this status may have a body.
    fileprivate var hasBody: Bool { code != 204 && code != 304 }
}

extension ChannelPipeline.SynchronousOperations {
    /// Resets the HTTP/2 stream of this pipeline.
    fileprivate func resetStream(_ code: NIOHTTP2.HTTP2ErrorCode) {
        let codec = try? context(handlerType: HTTP2FramePayloadToHTTP1ServerCodec.self)
        codec?.writeAndFlush(NIOAny(HTTP2Frame.FramePayload.rstStream(code)), promise: nil)
    }
}
#endif
