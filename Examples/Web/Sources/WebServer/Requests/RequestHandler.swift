internal import CoreMetrics
internal import Logging
internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTP2
internal import NIOWebSocket
internal import RunLoopUnix

/// Serves the requests of an HTTP/1.1 connection, or the single request of an HTTP/2 stream.
///
/// The handler reads as fast as the responder takes the body, and writes as fast as the client reads.
final class RequestHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundIn = Never
    typealias OutboundOut = HTTPServerResponsePart

    private let client: Client
    private var site: Site { client.site }
    /// The connection of HTTP/1.1; `nil` for a stream of HTTP/2.
    private let connection: ConnectionHandler?
    private var request: Request?
    private var isReadWanted = false
    /// `true` if the connection closes after the answer.
    private var isLast = false
    private var lastProgress = NIODeadline.uptimeNanoseconds(0)
    private var stallTimer: Scheduled<Void>?

    private static let mostHeld = 128 * 1024

    init(_ client: Client, _ connection: ConnectionHandler?) {
        (self.client, self.connection) = (client, connection)
    }

    // MARK: Receiving

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isLast else { return }
        // After an early answer, only the client's reading is progress.
        if request?.answer == nil { lastProgress = context.eventLoop.now }
        switch unwrapInboundIn(data) {
        case .head(let head): begin(head, context)
        case .body(let bytes): receive(bytes, context)
        case .end: end(context)
        }
    }

    private func begin(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        connection?.requestBegan()
        request = Request(
            head: head, begun: context.eventLoop.now,
            closes: connection != nil && (!head.isKeepAlive || head.stopsDecoder || client.refusal != nil))
        watchForStalls(context)
        do {
            if let limit = client.refusal { throw Refusal.reached(limit) }
            if connection != nil, let refusal = head.refusal {
                request!.closes = true
                throw refusal
            }
            let responder = try Router(site: site).responder(for: head, on: context.eventLoop)
            let announced = head.headers.first(name: "content-length").flatMap { Int($0) } ?? 0
            request?.responder = responder
            if announced > responder.mostBytes.count { throw Refusal.reached(responder.mostBytes.limit) }
            if head.headers[canonicalForm: "expect"].contains(where: { $0.lowercased() == "100-continue" }) {
                context.writeAndFlush(
                    wrapOutboundOut(.head(.init(version: head.version, status: .continue))), promise: nil)
            }
        } catch {
            fail(error, context)
        }
    }

    private func receive(_ bytes: ByteBuffer, _ context: ChannelHandlerContext) {
        site.measures.received.increment(by: bytes.readableBytes)
        // After an early answer the rest is not wanted.
        guard let responder = request?.responder else { return }
        request!.received += bytes.readableBytes
        guard request!.received <= responder.mostBytes.count else {
            return fail(Refusal.reached(responder.mostBytes.limit), context)
        }
        request!.held += bytes.readableBytes
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        responder.receive(bytes).whenComplete { [count = bytes.readableBytes] result in
            let (handler, context) = bound.value
            handler.hasTaken(count, result, context)
        }
    }

    private func hasTaken(_ count: Int, _ result: Result<Void, any Error>, _ context: ChannelHandlerContext) {
        guard request?.responder != nil else { return }
        lastProgress = context.eventLoop.now
        request!.held -= count
        if case .failure(let error) = result, !request!.isComplete { return fail(error, context) }
        guard isReadWanted, request!.held < Self.mostHeld else { return }
        isReadWanted = false
        context.read()
    }

    func read(context: ChannelHandlerContext) {
        // The rest of a long body stays with its sender.
        guard connection != nil || !isLast else { return }
        guard (request?.held ?? 0) < Self.mostHeld else { return isReadWanted = true }
        context.read()
    }

    private func end(_ context: ChannelHandlerContext) {
        guard request != nil else { return }
        request!.isComplete = true
        guard let responder = request!.responder else { return finishIfAnswered() }
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        responder.end().whenComplete { result in
            let (handler, context) = bound.value
            handler.lastProgress = context.eventLoop.now
            switch result {
            case .success(let response): handler.answer(response, context)
            case .failure(let error): handler.fail(error, context)
            }
        }
    }

    // MARK: Answering

    /// Answers with an error, perhaps before the request is complete.
    private func fail(_ error: any Error, _ context: ChannelHandlerContext) {
        guard request != nil, request!.answer == nil else { return }
        if !request!.isComplete { request!.responder?.abandon() }
        (request!.responder, request!.held) = (nil, 0)
        let refusal = error as? Refusal ?? Refusal(status: .internalServerError, text: "the request failed")
        if let limit = refusal.limit { site.measures.countRefusal(limit) }
        if refusal.status == .internalServerError { site.log.error("\(request!.head.uri.debugDescription): \(error)") }
        // Anything else that the client sends is part of an unwanted body.
        if !request!.isComplete, request!.hasBody { request!.closes = true }
        answer(Response(refusal), context)
    }

    private func answer(_ response: Response, _ context: ChannelHandlerContext) {
        guard request != nil, request!.answer == nil, context.channel.isActive else { return }
        request!.answer = response.status
        var headers = response.headers
        headers.add(name: "content-length", value: "\(response.length)")
        if request!.closes, connection != nil { headers.add(name: "connection", value: "close") }
        let head = HTTPResponseHead(version: request!.head.version, status: response.status, headers: headers)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        guard request!.head.method != .HEAD else { return endAnswer(context) }
        switch response.body {
        case .bytes(let bytes):
            request!.sent = bytes.readableBytes
            context.write(wrapOutboundOut(.body(.byteBuffer(bytes))), promise: nil)
            endAnswer(context)
        case .file(let file): send(file, from: 0, context)
        }
    }

    /// Sends a file, whose next piece is read when the client has received the previous one.
    private func send(_ file: StoredFile, from offset: Int, _ context: ChannelHandlerContext) {
        guard offset < file.length else { return endAnswer(context) }
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        file.read(at: offset).flatMap { piece in
            let (handler, context) = bound.value
            handler.lastProgress = context.eventLoop.now
            handler.request?.sent += piece.readableBytes
            return context.writeAndFlush(handler.wrapOutboundOut(.body(.byteBuffer(piece)))).map { piece.readableBytes }
        }.whenComplete { result in
            let (handler, context) = bound.value
            handler.lastProgress = context.eventLoop.now
            switch result {
            case .success(let count): handler.send(file, from: offset + count, context)
            case .failure(let error): handler.cutOff(error, context)
            }
        }
    }

    /// Ends the answer when the client has received it, so that a client that does not read has one answer in memory,
    /// and stalls.
    private func endAnswer(_ context: ChannelHandlerContext) {
        guard request != nil else { return }
        let bound = NIOLoopBound((self, request!, context), eventLoop: context.eventLoop)
        // In HTTP/1.1 the next request begins with the end, which is no byte. A stream may close with it.
        let last = connection == nil ? HTTPServerResponsePart.end(nil) : .body(.byteBuffer(ByteBuffer()))
        context.writeAndFlush(wrapOutboundOut(last)).whenComplete { result in
            let (handler, request, context) = bound.value
            if case .failure(let error) = result { return handler.cutOff(error, context) }
            handler.note(handler.request ?? request, at: context.eventLoop.now)
            handler.request?.isAnswered = true
            let closes = handler.request?.closes ?? request.closes
            // First, because a next request that has already arrived begins within the write.
            handler.finishIfAnswered()
            if handler.connection != nil {
                context.writeAndFlush(handler.wrapOutboundOut(.end(nil)), promise: nil)
            }
            if closes { handler.close(context) }
        }
    }

    /// Gives up an answer that cannot be completed.
    private func cutOff(_ error: any Error, _ context: ChannelHandlerContext) {
        if let request {
            site.log.info("\(client.peer) \(request.line) \(request.answer?.code ?? 0) cut off: \(error)")
        }
        context.close(promise: nil)
    }

    /// Makes room for the next request when this one is complete and answered.
    private func finishIfAnswered() {
        guard let request, request.isAnswered, request.isComplete || request.closes else { return }
        isLast = request.closes
        guard !isLast else { return }
        self.request = nil
        stallTimer?.cancel()
        connection?.requestEnded()
    }

    private func close(_ context: ChannelHandlerContext) {
        guard connection == nil else { return context.close(promise: nil) }
        // A short body ends its stream by itself. Some clients take a reset for a failure if it comes with the answer.
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        stallTimer?.cancel()
        stallTimer = context.eventLoop.scheduleTask(in: ConnectionHandler.grace) {
            let codec = try? bound.value.pipeline.syncOperations.context(
                handlerType: HTTP2FramePayloadToHTTP1ServerCodec.self)
            codec?.writeAndFlush(NIOAny(HTTP2Frame.FramePayload.rstStream(.noError)), promise: nil)
        }
    }

    private func note(_ request: Request, at end: NIODeadline) {
        let duration = end - request.begun
        let status = request.answer ?? .internalServerError
        site.measures.countAnswer(status)
        site.measures.sent.increment(by: request.sent)
        site.measures.seconds.recordNanoseconds(duration.nanoseconds)
        site.log.info(
            """
            \(client.peer) \(request.line) \(status.code) \(request.sent) \
            \(duration.nanoseconds / 1000)us
            """)
    }

    // MARK: Ends

    /// Ends a request whose body does not arrive, or whose answer is not read.
    private func watchForStalls(_ context: ChannelHandlerContext) {
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        let limit = TimeAmount(client.limits.stallTime)
        stallTimer?.cancel()
        stallTimer = context.eventLoop.scheduleTask(deadline: lastProgress + limit) {
            let (handler, context) = bound.value
            guard let request = handler.request else { return }
            // A client that waits for the disk is not to blame.
            let waits = request.held > 0 || request.isComplete && request.answer == nil
            guard !waits, handler.lastProgress + limit <= context.eventLoop.now else {
                if waits { handler.lastProgress = context.eventLoop.now }
                return handler.watchForStalls(context)
            }
            if request.answer == nil { return handler.fail(Refusal.reached(.stallTime), context) }
            handler.site.measures.countRefusal(.stallTime)
            context.close(promise: nil)
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case ChannelEvent.inputClosed? = event as? ChannelEvent else {
            return context.fireUserInboundEventTriggered(event)
        }
        // The last request, if there is one.
        if request == nil { context.close(promise: nil) } else { request!.closes = true }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? HTTPParserError else { return close(after: error, context) }
        // The decoder has seen no head, and reads no more.
        if request == nil {
            connection?.requestBegan()
            request = Request(
                head: HTTPRequestHead(version: .http1_1, method: .GET, uri: "-"), begun: context.eventLoop.now,
                closes: true)
        }
        request!.closes = true
        fail(error == .headerOverflow ? .reached(.headBytes) : Refusal(status: .badRequest, text: "\(error)"), context)
    }

    private func close(after error: any Error, _ context: ChannelHandlerContext) {
        site.log.debug("\(client.peer): \(error)")
        // After a refused upgrade, its request arrives, and is answered.
        if !(error is NIOWebSocketUpgradeError) { context.close(promise: nil) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        stallTimer?.cancel()
        if let request, !request.isComplete { request.responder?.abandon() }
        request = nil
        context.fireChannelInactive()
    }
}
