#if Adapters
internal import HTTPTypes
internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTP2
internal import RunLoopKit
@_spi(Ports) internal import RunLoopNIO

/// The last handler of a client's HTTP/1.1 connection, which has one exchange after another, or of an HTTP/2 stream, which has
/// one.
final class AnswerHandler: ChannelDuplexHandler, BodyChannel {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundIn = Never
    typealias OutboundOut = HTTPClientRequestPart

    private let isStream: Bool
    private let loop: RunLoop
    let modes: RunLoop.Modes
    private let options: HTTPClient.Options
    private var context: ChannelHandlerContext?
    private var exchange: ClientExchange?
    private var isReadWanted = false
    /// True if the connection can have no further exchange.
    private var closes = false
    private var isRequestSent = false
    private var isAnswered = false
    private var version = HTTPVersion.http1_1
    private let stall: Deadline

    /// Called when the connection has no exchange any more, with whether it can have another one.
    var ended: (Bool) -> Void = { _ in }
    /// Returns `false` for a stream that the server has said it will not begin with.
    var isBegun: (HTTP2StreamID) -> Bool = { _ in true }

    init(isStream: Bool, on loop: RunLoop, inModes modes: RunLoop.Modes, _ options: HTTPClient.Options) {
        (self.isStream, self.loop, self.modes, self.options) = (isStream, loop, modes, options)
        stall = Deadline(on: loop, inModes: modes)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        stall.reached = { [unowned self] in
            if let exchange { abandon(exchange, .stallTime) }
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        stall.reached = nil
        stall.cancel()
        finish(.closed)
    }

    var channel: (any Channel)? { context?.channel }

    // MARK: The request

    func begin(_ exchange: ClientExchange) {
        assert(self.exchange == nil && !closes, "a connection has two exchanges at a time")
        (self.exchange, isRequestSent, isAnswered) = (exchange, false, false)
    }

    func sendHead(_ request: HTTPRequest, length: Int?, isChunked: Bool) {
        guard let context else { return }
        var headers = HTTPHeaders()
        headers.add(name: "Host", value: request.authority ?? "")
        headers.add(contentsOf: HTTPHeaders(request.headerFields))
        if let length { headers.add(name: "Content-Length", value: String(length)) }
        if isChunked, !isStream { headers.add(name: "Transfer-Encoding", value: "chunked") }
        let head = HTTPRequestHead(
            version: .http1_1, method: HTTPMethod(rawValue: request.method.rawValue), uri: request.path ?? "/",
            headers: headers)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
    }

    func send(_ bytes: ByteBuffer) {
        guard let context else { return }
        context.write(wrapOutboundOut(.body(.byteBuffer(bytes))), promise: nil)
        if !context.channel.isWritable { progress() }
    }

    func sendEnd(_ trailers: HTTPFields?) {
        guard let context else { return }
        isRequestSent = true
        context.writeAndFlush(wrapOutboundOut(.end(trailers.map { HTTPHeaders($0) })), promise: nil)
        finishIfComplete()
    }

    var isWritable: Bool { context?.channel.isWritable ?? false }

    func flush() { context?.flush() }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable {
            exchange?.output?.drained()
            if exchange?.body?.isAwaited != true { stall.cancel() }
        }
        context.fireChannelWritabilityChanged()
    }

    // MARK: The answer

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard let exchange else { return context.close(promise: nil) }
        stall.cancel()
        switch unwrapInboundIn(data) {
        case .head(let head):
            // Answers before the last one are for those who have asked for them.
            guard head.status.code >= 200 else { return }
            guard let response = HTTPResponse(head) else {
                return abandon(exchange, .malformed(HTTPParserError.invalidHeaderToken))
            }
            if !head.isKeepAlive { closes = true }
            exchange.receiveHead(
                response, length: head.headers.first(name: "content-length").flatMap { Int($0) })
        case .body(let bytes): exchange.body?.receive(bytes)
        case .end(let trailers):
            isAnswered = true
            exchange.body?.receiveEnd(trailers.map { HTTPFields($0) })
            // A server that answers before it has all of a request does not want the rest.
            if !isRequestSent { closes = true }
            finishIfComplete()
        }
    }

    func read(context: ChannelHandlerContext) {
        guard exchange?.body?.isFull != true else { return isReadWanted = true }
        context.read()
    }

    func inputWasTaken() {
        guard isReadWanted else { return }
        isReadWanted = false
        context?.read()
    }

    func inputIsWanted() { progress() }

    /// Gives the server time for its next step.
    private func progress() {
        stall.set(after: options.stallTime)
    }

    // MARK: The end

    private func finishIfComplete() {
        guard isAnswered, isRequestSent || closes else { return }
        finish(nil)
    }

    /// Ends the exchange, if there is one.
    private func finish(_ failure: HTTPClient.Failure?) {
        stall.cancel()
        guard let exchange else { return }
        self.exchange = nil
        if failure != nil { closes = true }
        exchange.end(failure)
        if closes || isStream { context?.close(promise: nil) }
        ended(!closes)
    }

    func abandon(_ exchange: ClientExchange, _ failure: HTTPClient.Failure) {
        guard self.exchange === exchange else { return }
        if isStream, let context {
            let codec = try? context.pipeline.syncOperations.context(
                handlerType: HTTP2FramePayloadToHTTP1ClientCodec.self)
            codec?.writeAndFlush(NIOAny(HTTP2Frame.FramePayload.rstStream(.cancel)), promise: nil)
        }
        finish(failure)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // The decoder takes the end within an answer for an error of its own; all others are the connection's.
        if let closed = error as? NIOHTTP2Errors.StreamClosed {
            exchange?.isRefused = closed.errorCode == .refusedStream || !isBegun(closed.streamID)
        }
        let isMalformed = error is HTTPParserError && error as? HTTPParserError != .invalidEOFState
        finish(isMalformed ? .malformed(error) : .closed)
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        closes = true
        finish(.closed)
        ended(false)
        ended = { _ in }
        context.fireChannelInactive()
    }
}
#endif
