#if Adapters
internal import HTTPTypes
internal import NIOCore
@_spi(Ports) internal import RunLoopKit

/// A request of a client and its answer, from when it has a channel. On the loop's thread.
final class ClientExchange {
    let request: HTTPRequest
    private let loop: RunLoop
    private let options: HTTPClient.Options
    private let headWait: NamedWait
    private(set) var head: HTTPResponse?
    private var headDate = RunLoop.WallTime(secondsSince1970: 0)
    private(set) var body: IncomingBody?
    /// The request's body while it is written.
    private(set) var output: OutgoingBody?
    private(set) var writer: Task<Void, any Error>?
    private(set) var failure: HTTPClient.Failure?
    private var handler: AnswerHandler?
    /// True once the server has answered anything.
    var hasBegun: Bool { head != nil }
    /// True if the server has said that it has not begun with the request.
    var isRefused = false

    init(_ request: HTTPRequest, on loop: RunLoop, _ options: HTTPClient.Options) {
        (self.request, self.loop, self.options) = (request, loop, options)
        headWait = NamedWait(loop.remote, "waits for the answer of an HTTP server")
    }

    // MARK: The request

    func begin(on handler: AnswerHandler, _ body: HTTPClient.RequestBody) {
        self.handler = handler
        handler.begin(self)
        switch body.content {
        case .bytes(let bytes):
            let isBodiless =
                bytes.readableBytes == 0 && [.get, .head, .delete, .options, .trace].contains(request.method)
            handler.sendHead(request, length: isBodiless ? nil : bytes.readableBytes, isChunked: false)
            if bytes.readableBytes > 0 { handler.send(bytes) }
            handler.sendEnd(nil)
        case .stream(let length, let write):
            handler.sendHead(request, length: length, isChunked: length == nil)
            let output = OutgoingBody(length, to: handler, on: loop, wrongLength: HTTPClient.Failure.wrongLength)
            self.output = output
            writer = loop.task(name: "HTTP request body", inModes: handler.modes) { [self] in
                do {
                    try await write(HTTPBodyWriter(output))
                    guard self.output != nil else { return }
                    if let lacking = output.lacking, lacking > 0 { throw HTTPClient.Failure.wrongLength }
                    self.output = nil
                    output.end(nil)
                    self.handler?.sendEnd(output.trailers)
                } catch {
                    fail(error as? HTTPClient.Failure ?? .requestBody(error))
                }
            }
        }
        handler.flush()
    }

    // MARK: The answer

    func receiveHead(_ head: HTTPResponse, length: Int?) {
        (self.head, headDate) = (head, loop.wallTime)
        body = IncomingBody(
            from: handler, on: loop, announcedLength: length, maximum: options.bodyBytes,
            tooLong: HTTPClient.Failure.bodyLimit)
        headWait.end()
    }

    /// Waits for the head of the answer.
    nonisolated(nonsending) func response() async throws -> HTTPClient.Response {
        while true {
            if let head, let body {
                let body = HTTPBody(body, of: ExchangeHolder(self, on: loop))
                return HTTPClient.Response(head: head, body: body, date: headDate)
            }
            if let failure { throw failure }
            try await headWait.wait()
        }
    }

    // MARK: The end

    /// Ends the exchange, complete if there is no error. The channel has forgotten it.
    func end(_ failure: HTTPClient.Failure?) {
        handler = nil
        body?.forgetChannel()
        output?.end(failure ?? .closed)
        output = nil
        writer?.cancel()
        writer = nil
        guard let failure, self.failure == nil else { return }
        self.failure = failure
        body?.fail(failure)
        headWait.end()
    }

    /// Gives up: the connection is closed, or the stream is reset.
    func fail(_ failure: HTTPClient.Failure) {
        guard let handler else { return }
        handler.abandon(self, failure)
    }
}

/// Gives up an exchange when the program has released its answer, on any thread.
final class ExchangeHolder {
    private let exchange: LoopBound<ClientExchange>

    init(_ exchange: ClientExchange, on loop: RunLoop) {
        self.exchange = LoopBound(exchange, loop: loop)
    }

    deinit {
        let exchange = exchange
        if exchange.remote.isCurrent {
            exchange.value.fail(.closed)
        } else {
            exchange.remote.perform(inModes: .every) { _ in exchange.value.fail(.closed) }
        }
    }
}
#endif
