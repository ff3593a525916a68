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
final class ExchangeHandler: ChannelDuplexHandler, RemovableChannelHandler, BodyChannel, DrainingHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundIn = Never

    let client: ServedClient
    /// The connection of HTTP/1.1; `nil` for a stream of HTTP/2.
    private let connection: ConnectionHandler?
    private(set) var context: ChannelHandlerContext?

    private enum Stage {
        /// The next request is yet to come.
        case idle
        /// The head of a request without a body has come. The program is asked when its end has, too.
        case head(HTTPExchange)
        /// The program answers.
        case open(HTTPExchange)
        /// The answer has been written, and the rest of the request is forgotten.
        case answered(HTTPExchange)
        /// The exchange is over, and the end of its answer is about to be written.
        case ending
        /// Nothing more is served.
        case over
    }
    private var stage = Stage.idle
    private var version = HTTPVersion.http1_1
    private var early = EarlyInput()
    private var upgrade = Upgrade.possible
    var drainTurn = DrainTurn()
    private var isReadWanted = false
    private var isFlushWanted = false
    /// The number of calls under way whose output is flushed at the end of the outermost.
    private var depth = 0
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
        end(.closed, then: .over)
    }

    /// The present exchange.
    private var exchange: HTTPExchange? {
        switch stage {
        case .head(let exchange), .open(let exchange), .answered(let exchange): exchange
        case .idle, .ending, .over: nil
        }
    }

    private var output: AnswerOutput? { context.map { AnswerOutput(connection: connection, context: $0) } }

    private var isOver: Bool {
        if case .over = stage { true } else { false }
    }

    /// The TLS session below the connection.
    var tls: TLSSession? { context.flatMap { ($0.channel.parent ?? $0.channel).tls } }

    // MARK: Receiving

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let part = unwrapInboundIn(data)
        guard !keeps(.part(part)) else { return }
        if case .head(let head) = part, let connection, upgrade.mayBegin(with: head) {
            return considerUpgrade(head, connection, context)
        }
        receive(part)
    }

    private func receive(_ part: HTTPServerRequestPart) {
        guard !isOver else { return }
        depth += 1
        switch part {
        case .head(let head): if !upgrade.wasDeclined() { begin(head) }
        case .body(let bytes):
            // After an early answer, only the client's reading is progress.
            if exchange?.discardsInput == false { progress() }
            exchange?.receive(bytes)
        case .end(let trailers): receiveEnd(trailers.map { HTTPFields($0) })
        }
        depth -= 1
        flushIfWanted()
    }

    private func receiveEnd(_ trailers: HTTPFields?) {
        progress()
        exchange?.receiveEnd(trailers)
        if case .head(let exchange) = stage { serve(exchange) }
        if case .answered(let exchange) = stage {
            finish(exchange, then: .idle)
            // The connection was told to close between the end of the answer and that of the request.
            if isOver, connection != nil { close() }
        }
        // The program answers later.
        if exchange != nil { connection?.readAhead() }
    }

    // MARK: Pipelined requests

    /// True if the next request of the connection waits for the end of an answer.
    private var isAnswering: Bool {
        guard connection != nil else { return false }
        if case .ending = stage { return true }
        return exchange?.body.isComplete == true
    }

    /// Keeps input for later if an earlier request is being answered.
    private func keeps(_ input: @autoclosure () -> EarlyInput.Piece) -> Bool {
        guard isAnswering || !early.isEmpty else { return false }
        if !isOver { early.append(input()) }
        return true
    }

    /// Serves the requests that have come early, one after another, until one is answered later. Reads on then.
    private func takeEarly() {
        guard connection != nil, early.beginTaking() else { return }
        while !isAnswering, context != nil, let input = early.next() {
            switch input {
            case .part(let part): receive(part)
            case .error(let error): fail(error)
            case .inputClosed: inputClosed()
            }
        }
        early.endTaking()
        readIfWanted()
    }

    // MARK: Upgrades

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

    /// Begins an exchange that may make the connection a WebSocket.
    ///
    /// - Returns: a future of the fields of the answer; `nil` if the exchange is served as any other.
    func considerUpgrade(_ head: HTTPRequestHead, on eventLoop: any EventLoop) -> EventLoopFuture<HTTPHeaders?> {
        let promise = eventLoop.makePromise(of: HTTPHeaders?.self)
        upgrade = .considered(promise)
        begin(head)
        return promise.futureResult
    }

    /// Serves the exchange as any other.
    private func declineUpgrade() {
        // The head comes again within the call.
        upgrade.decline()?.succeed(nil)
    }

    /// Makes the connection a WebSocket.
    ///
    /// - Returns: whether the request asked for that.
    func accept(_ socket: WebSocket, of exchange: HTTPExchange) -> Bool {
        guard self.exchange === exchange, let promise = upgrade.agree(socket) else { return false }
        exchange.status = .switchingProtocols
        socket.ended = { [client, version] loss in
            exchange.limit = HTTPServer.Limit(loss)
            client.note(exchange, version, isCutOff: exchange.limit != nil)
            exchange.cancelTask()
        }
        end(nil, then: .over)
        promise.succeed(socket.subprotocol.map { ["Sec-WebSocket-Protocol": $0] } ?? [:])
        return true
    }

    /// Adds the handlers of a WebSocket, when the client has been told.
    func upgraded(_ channel: any Channel) throws {
        if let socket = upgrade.takeSocket() { try channel.pipeline.syncOperations.addWebSocket(socket) }
    }

    // MARK: The request

    private func begin(_ head: HTTPRequestHead) {
        connection?.requestBegan()
        version = head.version
        let (request, rules) = (HTTPRequest(head), RequestRules(head))
        let exchange = HTTPExchange(
            request ?? .unreadable, self, announcedLength: rules.announcedLength,
            expectsContinue: isPersistent && rules.expectsContinue, closes: isLastRequest(head, rules))
        stage = .open(exchange)
        lastProgress = exchange.begun
        if let limit = client.refusal {
            exchange.fail(HTTPServer.Refusal.reached(limit))
        } else if let refusal = connection != nil ? rules.refusal(of: head) : nil {
            exchange.closes = true
            exchange.fail(refusal)
        } else if request == nil {
            exchange.closes = connection != nil
            exchange.fail(HTTPServer.Refusal(.badRequest, "the host, the method or a name is not one"))
        } else if connection == nil || rules.hasBody || rules.stopsDecoder {
            serve(exchange)
        } else {
            // The end is the next part. When it has come, the answer needs no thought of a body.
            return stage = .head(exchange)
        }
        if self.exchange === exchange { phaseChanged() }
    }

    /// True if the connection closes after the answer to a request.
    private func isLastRequest(_ head: HTTPRequestHead, _ rules: RequestRules) -> Bool {
        guard let connection else { return false }
        return !head.isKeepAlive || rules.stopsDecoder || client.refusal != nil || connection.isQuiescing
    }

    private func serve(_ exchange: HTTPExchange) {
        stage = .open(exchange)
        client.core.serve(exchange, on: client.loop)
    }

    func read(context: ChannelHandlerContext) {
        // The rest of a long body stays with its sender.
        guard connection != nil || !isOver else { return }
        guard !isAnswering, exchange?.body.isFull != true else { return isReadWanted = true }
        context.read()
    }

    private func readIfWanted() {
        guard isReadWanted, !isAnswering, exchange?.body.isFull != true else { return }
        isReadWanted = false
        context?.read()
    }

    func inputWasTaken() {
        progress()
        readIfWanted()
    }

    func inputIsWanted() { exchange?.inputIsWanted() }

    // MARK: Answering

    /// True for HTTP/1.1 and HTTP/2, whose connections stay open, and whose bodies need no length.
    private var isPersistent: Bool { version.major > 1 || version.minor > 0 }

    var isWritable: Bool { context?.channel.isWritable ?? false }

    func sendContinue() {
        output?.writeContinue()
        output?.flush()
    }

    func sendHead(_ response: HTTPResponse, _ status: HTTPResponse.Status, of exchange: HTTPExchange, length: Int?) {
        declineUpgrade()
        guard let output else { return }
        // A client that waits for the permission to send its body may send it or not.
        if exchange.owesContinue { exchange.closes = true }
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
        }
        let date = client.date.now(on: client.loop)
        output.writeHead(status, response.headerFields, isVersion10: !isPersistent, framing, date: date)
        progress()
        flushSoon()
    }

    func send(_ bytes: ByteBuffer) {
        guard let output, exchange?.sendsBody == true else { return }
        // No progress of the client, who may have read nothing since the last write.
        output.write(bytes)
        flushSoon()
    }

    /// Completes an answer: at once if the client reads and the connection stays open, so that the next request of HTTP/1.1
    /// begins. Otherwise, when the client has received it: a client that does not read has one answer in memory, and
    /// stalls.
    func sendEnd(of exchange: HTTPExchange, _ trailers: HTTPFields?) {
        guard let output else { return }
        guard exchange.closes || !isWritable else { return conclude(exchange, trailers) }
        progress()
        let bound = NIOLoopBound((self, exchange, trailers), eventLoop: output.context.eventLoop)
        output.flushAndWait().whenComplete { result in
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
        stage = .answered(exchange)
        if exchange.body.isComplete || closes {
            // First, because the end of a stream may close its channel within the write.
            finish(exchange, then: .ending)
        } else {
            // The rest of the body has its time.
            progress()
        }
        depth += 1
        output?.writeEnd(trailers)
        if case .ending = stage { stage = .idle }
        flushSoon()
        if closes { close() }
        depth -= 1
        flushIfWanted()
        takeEarly()
    }

    /// Ends an exchange whose request is complete and answered.
    ///
    /// - Parameter next: the stage of a connection that serves a further request.
    private func finish(_ exchange: HTTPExchange, then next: Stage) {
        let isLast = connection == nil || exchange.closes
        end(nil, then: isLast ? .over : next)
        if connection == nil {
            // The end of a stream may wait for the client's window.
            timeout.set(after: client.settings.limits.stallTime)
        } else if isLast {
            early.removeAll()
        } else {
            connection?.requestEnded()
        }
    }

    /// Gives up an answer that cannot be completed.
    func cutOff(_ exchange: HTTPExchange) {
        guard let output, self.exchange === exchange else { return }
        end(.closed, then: .over)
        // The client receives the part that there is. A reset drops the bytes of its stream that have not been sent.
        guard connection == nil, isWritable else { return output.reset() }
        timeout.set(after: ConnectionHandler.grace)
        let bound = NIOLoopBound(output, eventLoop: output.context.eventLoop)
        output.flushAndWait().whenComplete { _ in bound.value.reset() }
    }

    /// Ends the present exchange, if there is one.
    private func end(_ error: HTTPServer.ExchangeError?, then next: Stage) {
        let ended = exchange
        stage = next
        guard let ended else { return }
        if error != nil { declineUpgrade() }
        timeout.pause()
        // A WebSocket is over when its connection closes.
        if !upgrade.isAgreed { client.note(ended, version, isCutOff: error != nil) }
        ended.end(error)
    }

    // MARK: Flushing

    private func flushSoon() {
        isFlushWanted = true
        guard depth == 0 else { return }
        // A call of the program, outside of a handler.
        duringWrite { flushIfWanted() }
    }

    private func flushIfWanted() {
        guard depth == 0, isFlushWanted else { return }
        isFlushWanted = false
        output?.flush()
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
        peerHasRead()
        context.fireChannelWritabilityChanged()
    }

    func drained() { together { exchange?.drained() } }

    // MARK: Ends

    private func close() {
        guard let output else { return }
        flushIfWanted()
        if connection != nil { return output.close() }
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
        output?.close()
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
        guard !isOver else { return }
        let exchange = exchange ?? unreadable()
        exchange.closes = true
        exchange.fail(
            error == .headerOverflow
                ? HTTPServer.Refusal.reached(.headBytes) : HTTPServer.Refusal(.badRequest, "\(error)"))
    }

    /// Begins an exchange for a request without a head.
    private func unreadable() -> HTTPExchange {
        connection?.requestBegan()
        let exchange = HTTPExchange(.unreadable, self, announcedLength: nil, expectsContinue: false, closes: true)
        stage = .open(exchange)
        return exchange
    }

    func channelInactive(context: ChannelHandlerContext) {
        early.removeAll()
        end(.closed, then: .over)
        timeout.cancel()
        // The connection has closed before it spoke WebSocket.
        upgrade.takeSocket()?.end()
        context.fireChannelInactive()
    }

    // MARK: Times

    private func progress() {
        lastProgress = client.loop.now
        phaseChanged()
    }

    /// Sets the deadline of the present phase.
    func phaseChanged() {
        guard let exchange else { return timeout.pause() }
        // The body of a request that asks for a WebSocket comes when that is decided.
        if upgrade.isConsidered, exchange.waitsForInput { declineUpgrade() }
        guard let limit = exchange.phase(isWritable) else { return timeout.pause() }
        let limits = client.settings.limits
        timeout.set(lastProgress + (limit == .answerTime ? limits.answerTime : limits.stallTime))
    }

    private func deadlinePassed() {
        switch stage {
        case .answered where connection == nil, .idle, .ending, .over:
            output?.resetStream(.noError)
        case .head(let exchange), .open(let exchange), .answered(let exchange):
            guard let limit = exchange.phase(isWritable) else { return }
            exchange.limit = limit
            if case .awaited = exchange.answer {
                exchange.fail(HTTPServer.Refusal.reached(limit))
            } else {
                cutOff(exchange)
            }
        }
    }
}
#endif
