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
        let part = unwrapInboundIn(data)
        guard !keeps(.part(part)) else { return }
        if case .head(let head) = part, isFirstHead, let connection {
            isFirstHead = false
            if head.headers.contains(name: "upgrade") {
                return considerUpgrade(head, connection, context)
            }
        }
        receive(part)
    }

    private func receive(_ part: HTTPServerRequestPart) {
        guard !isLast else { return }
        depth += 1
        switch part {
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
            let isLate = isConcluded
            finishIfAnswered()
            // The connection was told to close between the end of the answer and that of the request.
            if isLate, isLast, connection != nil { close() }
            // The program answers later.
            if exchange != nil { connection?.readAhead() }
        }
        depth -= 1
        flushIfWanted()
    }

    // MARK: Pipelined requests

    /// Input that came while an earlier request was answered.
    private enum Early {
        case part(HTTPServerRequestPart)
        case error(HTTPParserError)
        case inputClosed
    }
    private var early = CircularBuffer<Early>(initialCapacity: 0)
    private var isTakingEarly = false
    /// True while the end of an answer is about to be written.
    private var isEndOwed = false

    /// True if the next request of the connection waits for the end of an answer.
    private var isAnswering: Bool { connection != nil && (isEndOwed || exchange?.body.isComplete == true) }

    /// Keeps input for later if an earlier request is being answered.
    private func keeps(_ input: @autoclosure () -> Early) -> Bool {
        guard isAnswering || !early.isEmpty else { return false }
        if !isLast { early.append(input()) }
        return true
    }

    /// Serves the requests that have come early, one after another, until one is answered later. Reads on then.
    private func takeEarly() {
        guard connection != nil, !isTakingEarly else { return }
        isTakingEarly = true
        while !isAnswering, context != nil, let input = early.popFirst() {
            switch input {
            case .part(let part): receive(part)
            case .error(let error): fail(error)
            case .inputClosed: inputClosed()
            }
        }
        isTakingEarly = false
        readIfWanted()
    }

    // MARK: Upgrades

    /// True until the first head of the connection, which alone may ask for a WebSocket.
    private var isFirstHead = true

    private func considerUpgrade(
        _ head: HTTPRequestHead, _ connection: ConnectionHandler, _ context: ChannelHandlerContext
    ) {
        do {
            try context.pipeline.syncOperations.considerUpgrade(
                head, for: self, connection, mostBytes: client.settings.limits.messageBytes)
        } catch {
            context.fireErrorCaught(error)
            context.close(promise: nil)
        }
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
        socket.ended = { [client, version] loss in
            exchange.limit = HTTPServer.Limit(loss)
            client.note(exchange, version, isCutOff: exchange.limit != nil)
            exchange.cancelTask()
        }
        exchangeEnded(nil)
        upgrade.succeed(socket.subprotocol.map { ["Sec-WebSocket-Protocol": $0] } ?? [:])
        return true
    }

    /// Adds the handlers of a WebSocket, when the client has been told.
    func upgraded(_ channel: any Channel) throws {
        if let socket = socket.take() { try channel.pipeline.syncOperations.addWebSocket(socket) }
    }

    private func begin(_ head: HTTPRequestHead) {
        connection?.requestBegan()
        version = head.version
        let request = HTTPRequest(head)
        let exchange = HTTPExchange(
            request ?? .unreadable, self,
            announcedLength: head.headers.first(name: "content-length").flatMap { Int($0) },
            expectsContinue: isPersistent && head.expectsContinue,
            closes: isLastRequest(head))
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

    /// True if the connection closes after the answer to a request.
    private func isLastRequest(_ head: HTTPRequestHead) -> Bool {
        guard let connection else { return false }
        return !head.isKeepAlive || head.stopsDecoder || client.refusal != nil || connection.isQuiescing
    }

    private func serve() {
        guard let exchange else { return }
        client.core.serve(exchange, on: client.loop)
    }

    func read(context: ChannelHandlerContext) {
        // The rest of a long body stays with its sender.
        guard connection != nil || !isLast else { return }
        guard !isAnswering, exchange?.body.isFull != true else { return isReadWanted = true }
        context.read()
    }

    private func readIfWanted() {
        guard isReadWanted, !isAnswering, exchange?.body.isFull != true else { return }
        isReadWanted = false
        context?.read()
    }

    /// Notes that the program has taken what had come of the body.
    func inputWasTaken() {
        progress()
        readIfWanted()
    }

    // MARK: Answering

    /// True for HTTP/1.1 and HTTP/2, whose connections stay open, and whose bodies need no length.
    private var isPersistent: Bool { version.major > 1 || version.minor > 0 }

    var isWritable: Bool { context?.channel.isWritable ?? false }

    /// What has been written of answers in HTTP/1.1 since the last flush.
    private var output = AnswerBytes()

    func sendContinue() {
        if connection != nil {
            output.writeContinue()
        } else {
            context?.write(wrapOutboundOut(.head(HTTPResponseHead(version: version, status: .continue))), promise: nil)
        }
        sendAll()
    }

    func sendHead(_ response: HTTPResponse, _ status: HTTPResponse.Status, of exchange: HTTPExchange, length: Int?) {
        declineUpgrade()
        guard let context else { return }
        // A client that waits for the permission to send its body may send it or not.
        if exchange.owesContinue { exchange.closes = true }
        let date = client.date.now(on: client.loop)
        var framing = AnswerBytes.Framing(length: status.hasBody ? length : nil)
        if connection != nil {
            if status.hasBody, length == nil {
                if !isPersistent {
                    exchange.closes = true
                } else {
                    framing.isChunked = exchange.request.method != .head
                }
            }
            framing.connection = exchange.closes ? "close" : isPersistent ? nil : "keep-alive"
            output.writeHead(status, response.headerFields, isVersion10: !isPersistent, framing, date: date)
        } else {
            var headers = HTTPHeaders(response.headerFields)
            if let length = framing.length { headers.add(name: "Content-Length", value: String(length)) }
            if !headers.contains(name: "date") { headers.add(name: "Date", value: date) }
            let head = HTTPResponseHead(
                version: version,
                status: HTTPResponseStatus(statusCode: status.code, reasonPhrase: status.reasonPhrase),
                headers: headers)
            context.write(wrapOutboundOut(.head(head)), promise: nil)
        }
        progress()
        flushSoon()
    }

    func send(_ bytes: ByteBuffer) {
        guard let context, exchange?.sendsBody == true else { return }
        if let connection {
            let (collected, piece) = output.write(bytes)
            if let collected { connection.write(collected) }
            if let piece { connection.write(piece) }
        } else {
            context.write(wrapOutboundOut(.body(.byteBuffer(bytes))), promise: nil)
        }
        progress()
        flushSoon()
    }

    /// Flushes, and completes the future when the client's system has all that has been written.
    private func flushAndWait(_ context: ChannelHandlerContext) -> EventLoopFuture<Void> {
        guard let connection else {
            return context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(ByteBuffer()))))
        }
        handOver()
        let promise = context.eventLoop.makePromise(of: Void.self)
        connection.write(ByteBuffer(), promise: promise)
        connection.flush()
        return promise.futureResult
    }

    /// Completes an answer: at once if the client reads and the connection stays open, so that the next request of HTTP/1.1
    /// begins. Otherwise, when the client has received it: a client that does not read has one answer in memory, and
    /// stalls.
    func sendEnd(of exchange: HTTPExchange, _ trailers: HTTPFields?) {
        guard let context else { return }
        guard exchange.closes || !context.channel.isWritable else { return conclude(exchange, trailers) }
        progress()
        let bound = NIOLoopBound((self, exchange, trailers), eventLoop: context.eventLoop)
        flushAndWait(context).whenComplete { result in
            let (handler, exchange, trailers) = bound.value
            switch result {
            case .success: handler.conclude(exchange, trailers)
            case .failure: handler.cutOff(exchange)
            }
        }
    }

    private func conclude(_ exchange: HTTPExchange, _ trailers: HTTPFields?) {
        guard context != nil, self.exchange === exchange else { return }
        let closes = exchange.closes
        (isConcluded, isEndOwed) = (true, true)
        // First, because the end of a stream may close its channel within the write.
        finishIfAnswered()
        // The rest of the body has its time.
        if self.exchange === exchange { progress() }
        depth += 1
        if connection != nil {
            output.writeEnd(trailers)
        } else {
            context?.write(wrapOutboundOut(.end(trailers.map { HTTPHeaders($0) })), promise: nil)
        }
        isEndOwed = false
        flushSoon()
        if closes { close() }
        depth -= 1
        flushIfWanted()
        takeEarly()
    }

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
        } else {
            early.removeAll()
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
        flushAndWait(context).whenComplete { _ in
            let (handler, context) = bound.value
            handler.reset(context)
        }
    }

    private func reset(_ context: ChannelHandlerContext) {
        if connection == nil {
            context.pipeline.syncOperations.resetStream(.internalError)
        } else {
            sendAll()
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
        guard depth == 0 else { return }
        // A call of the program, outside of a handler.
        isWithinCall = true
        flushIfWanted()
        isWithinCall = false
    }

    private func flushIfWanted() {
        guard depth == 0, isFlushWanted else { return }
        isFlushWanted = false
        sendAll()
    }

    /// Gives the collected bytes of answers to the channel.
    private func handOver() {
        if let bytes = output.take() { connection?.write(bytes) }
    }

    private func sendAll() {
        handOver()
        if let connection { connection.flush() } else { context?.flush() }
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
        if context.channel.isWritable { drain(context) }
        context.fireChannelWritabilityChanged()
    }

    /// True while a call of the program is flushed.
    private var isWithinCall = false
    private var isDraining = false

    /// Tells the program that it can write on; later if it is just writing.
    private func drain(_ context: ChannelHandlerContext) {
        guard !isWithinCall, !isDraining else { return drainLater(context) }
        isDraining = true
        together { exchange?.drained() }
        isDraining = false
    }

    private var isDrainOwed = false

    private func drainLater(_ context: ChannelHandlerContext) {
        guard !isDrainOwed else { return }
        isDrainOwed = true
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        context.eventLoop.execute {
            let handler = bound.value
            handler.isDrainOwed = false
            if let context = handler.context, handler.isWritable { handler.drain(context) }
        }
    }

    // MARK: Ends

    private func close() {
        guard let context else { return }
        flushIfWanted()
        guard connection == nil else {
            handOver()
            return context.close(promise: nil)
        }
        // A short body ends its stream by itself. Some clients take a reset for a failure if it comes with the answer.
        lastProgress = client.loop.now
        timeout.set(after: ConnectionHandler.grace)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case ChannelEvent.inputClosed:
            if !keeps(.inputClosed) { inputClosed() }
        case is ChannelShouldQuiesceEvent where connection != nil: quiesce()
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    private func inputClosed() {
        // The last request, if there is one.
        if let exchange { return exchange.closes = true }
        handOver()
        context?.close(promise: nil)
    }

    /// Makes the present request the last one of its connection.
    private func quiesce() {
        early.removeAll()
        exchange?.closes = true
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // A request that asks for a WebSocket in vain is answered as any other.
        if error is NIOWebSocketUpgradeError { return }
        guard let error = error as? HTTPParserError else { return context.close(promise: nil) }
        if !keeps(.error(error)) { fail(error) }
    }

    /// Answers a request that the decoder refuses. It reads no more.
    private func fail(_ error: HTTPParserError) {
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
        early.removeAll()
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
