#if Adapters
public import HTTPTypes
public import NIOCore
@_spi(Ports) public import RunLoopKit
public import RunLoopTLS
public import RunLoopUnix

/// A request and its answer, for a server with handlers.
///
/// ```swift
/// let server = HTTPServer(on: loop) { exchange in
///     var count = 0
///     exchange.receiveHandler = { _, bytes in count += bytes.readableBytes }
///     exchange.endHandler = { $0.respond(.text("\(count) bytes\n")) }
/// }
/// ```
///
/// The closure of the server receives each exchange when the head of its request has come, before its body is read. It
/// answers at once or later, with ``respond(_:)``, or with ``begin(_:length:)``, ``write(_:)`` and ``finish(trailers:)``. An
/// exchange belongs to the thread of its connection's loop, which keeps it until it is over. Calls after its end have no
/// effect.
public final class HTTPExchange {
    /// The method, the target and the fields of the request.
    public let request: HTTPRequest
    /// The address of the client.
    public let peer: Endpoint
    /// The loop of the connection, to whose thread the exchange belongs.
    public let loop: RunLoop
    let begun: RunLoop.Instant
    /// The handler of the channel; `nil` when the exchange is over.
    private var handler: ExchangeHandler?
    private let client: ServedClient

    /// The state of the answer.
    enum Answer {
        case awaited
        /// The head has been sent.
        case body(OutgoingBody)
        case ended
    }
    private(set) var answer = Answer.awaited
    var status: HTTPResponse.Status?
    private(set) var sent = 0
    /// The limit that the client has reached.
    var limit: HTTPServer.Limit?
    /// True if the connection closes after the answer.
    var closes: Bool

    init(
        _ request: HTTPRequest, _ handler: ExchangeHandler, announcedLength: Int?, expectsContinue: Bool, closes: Bool
    ) {
        (self.request, self.handler) = (request, handler)
        client = handler.client
        (peer, loop, begun) = (client.peer, client.loop, client.loop.now)
        (owesContinue, self.closes) = (expectsContinue, closes)
        body = IncomingBody(
            from: handler, on: client.loop, announcedLength: announcedLength,
            maximum: client.settings.limits.bodyBytes, tooLong: HTTPServer.Refusal.reached(.bodyBytes))
    }

    /// The TLS session below the connection; `nil` if the connection does not speak TLS, or has closed.
    public var tls: TLSSession? { handler?.tls }

    /// True until the answer is complete, or the client has gone.
    public var isOpen: Bool { handler != nil }

    /// The handlers of the program. One value, because each access to a stored property that is public costs a check.
    private struct Handlers {
        var receive: ((HTTPExchange, ByteBuffer) -> Void)?
        var end: ((HTTPExchange) -> Void)?
        var drain: ((HTTPExchange) -> Void)?
        var close: ((HTTPExchange, HTTPServer.ExchangeError?) -> Void)?

        /// True if the program takes the body of the request by handlers.
        var takesInput: Bool { receive != nil || end != nil }
    }
    private var handlers = Handlers()

    /// Called once, when the answer is complete or the connection has closed before. The error is `nil` for a complete one.
    public var closeHandler: ((HTTPExchange, HTTPServer.ExchangeError?) -> Void)? {
        get { handlers.close }
        set { handlers.close = newValue }
    }

    // MARK: The body of the request

    let body: IncomingBody
    private var pauses = 0
    private var hasReportedEnd = false
    private var isDelivering = false
    /// True if the client waits for `100 Continue`.
    private(set) var owesContinue: Bool

    /// The largest number of bytes that the body may have; by default ``HTTPServer/Limits/bodyBytes``. Set it before you take
    /// the body.
    public var maximumBody: Int {
        get { body.maximum }
        set { body.maximum = newValue }
    }

    /// The fields after the body; `nil` before its end, and if there are none.
    public var trailers: HTTPFields? { body.trailers }

    /// Called with each piece of the body. Without a handler, and while reading is paused, some 64 KiB wait at most, and the
    /// rest stays with the client. A body that is longer than ``maximumBody`` is answered with 413.
    public var receiveHandler: ((HTTPExchange, ByteBuffer) -> Void)? {
        get { handlers.receive }
        set {
            handlers.receive = newValue
            deliver()
        }
    }

    /// Called when the body is complete and ``receiveHandler`` has received all of it.
    public var endHandler: ((HTTPExchange) -> Void)? {
        get { handlers.end }
        set {
            handlers.end = newValue
            deliver()
        }
    }

    /// Leaves further pieces of the body with the client. Each call needs one of ``resumeReading()``.
    public func pauseReading() { pauses += 1 }

    /// Ends a pause.
    public func resumeReading() {
        require(pauses > 0, "an exchange's reading is resumed more often than paused; pair each resume with a pause")
        pauses -= 1
        deliver()
    }

    /// True if the rest of the body is read and forgotten, because the answer is complete.
    var discardsInput: Bool {
        if case .ended = answer { return true }
        return handler == nil
    }

    func receive(_ bytes: ByteBuffer) {
        owesContinue = false
        body.receive(bytes)
        if discardsInput { body.drop() } else { deliver() }
    }

    func receiveEnd(_ trailers: HTTPFields?) {
        body.receiveEnd(trailers)
        deliver()
    }

    /// Passes the bytes that have come to the handlers of the program.
    private func deliver() {
        guard handlers.takesInput, !isDelivering, !discardsInput, pauses == 0 else { return }
        isDelivering = true
        defer { isDelivering = false }
        do {
            while let piece = try body.take() {
                handlers.receive?(self, piece)
                if pauses > 0 || discardsInput { return }
            }
        } catch {
            return fail(error)
        }
        if body.isComplete, !hasReportedEnd, let end = handlers.end {
            hasReportedEnd = true
            end(self)
        }
    }

    /// Notes that the program asks for more of the body than has come.
    func inputIsWanted() {
        if owesContinue {
            owesContinue = false
            handler?.sendContinue()
        }
        handler?.phaseChanged()
    }

    /// True if the program has asked for more of the body than has come.
    var waitsForInput: Bool {
        !body.isComplete && body.input.readableBytes == 0
            && (body.isAwaited || handlers.takesInput && pauses == 0)
    }

    // MARK: The answer

    private var failure: HTTPServer.ExchangeError?

    /// True if the client reads fast enough. Stop writing while it is false, until ``drainHandler`` is called.
    public var isWritable: Bool { handler?.isWritable ?? false }

    /// Called when the client has read enough of the answer, so that more can be written.
    public var drainHandler: ((HTTPExchange) -> Void)? {
        get { handlers.drain }
        set { handlers.drain = newValue }
    }

    /// Answers with a body in memory.
    ///
    /// - Precondition: the exchange has not been answered, and the response is no stream and no WebSocket, which are for
    ///   tasks; use ``begin(_:length:)`` or ``acceptWebSocket(subprotocol:)`` instead.
    public func respond(_ response: HTTPServer.Response) {
        guard case .bytes(let body) = response.content else {
            preconditionFailure(
                """
                an exchange is answered with a stream or a WebSocket of a task; use begin(_:length:) or \
                acceptWebSocket(subprotocol:)
                """)
        }
        handler?.together {
            begin(response.head, length: body.readableBytes)
            if body.readableBytes > 0 { write(body) }
            finish()
        }
    }

    /// Begins an answer, whose body follows.
    ///
    /// - Parameters:
    ///   - response: the status and the fields. The server adds the fields that frame the body, and the date.
    ///   - length: the number of bytes that will be written; by default it is not announced.
    /// - Precondition: the exchange has not been answered.
    public func begin(_ response: HTTPResponse, length: Int? = nil) {
        guard let handler else { return }
        guard case .awaited = answer else { preconditionFailure("an exchange is answered twice; answer each once") }
        let status = response.status
        require(status.code >= 200, "an answer has a status of 200 or more")
        self.status = status
        answer = .body(
            OutgoingBody(
                length, to: handler, on: loop, wrongLength: HTTPServer.ExchangeError.wrongLength))
        handler.sendHead(response, status, of: self, length: length)
    }

    /// Writes a part of the answer's body. Bytes that are written in one handler are sent together. More bytes than were
    /// announced close the connection.
    ///
    /// - Precondition: the answer has begun, and has not been finished.
    public func write(_ bytes: ByteBuffer) {
        guard handler != nil else { return }
        guard case .body(let body) = answer else {
            preconditionFailure("an exchange's answer is written before it begins, or after it is finished")
        }
        do { try body.write(bytes) } catch { cutOff(.wrongLength) }
    }

    /// Completes the answer. If bytes are lacking that were announced, it closes the connection.
    ///
    /// - Parameter trailers: fields to send after the body, if its length was not announced.
    /// - Precondition: the answer has begun, and has not been finished.
    public func finish(trailers: HTTPFields? = nil) {
        guard let handler else { return }
        guard case .body(let body) = answer else {
            preconditionFailure("an exchange's answer is finished before it begins, or twice")
        }
        if let lacking = body.lacking, lacking > 0, request.method != .head { return cutOff(.wrongLength) }
        answer = .ended
        sent = body.sent
        body.end(nil)
        self.body.drop()
        handler.sendEnd(of: self, trailers ?? body.trailers)
    }

    /// Makes the connection a ``WebSocket``, which ends the exchange. Set the socket's handlers at once. A request that does not
    /// ask for a WebSocket, or that comes by HTTP/2, or whose body is taken, is answered with 426.
    ///
    /// - Parameter subprotocol: one of those that the request offers in `Sec-WebSocket-Protocol`.
    /// - Returns: the socket, which its connection keeps; `nil` if there is none, and the exchange is over.
    /// - Precondition: the exchange has not been answered.
    public func acceptWebSocket(subprotocol: String? = nil) -> WebSocket? {
        guard let handler else { return nil }
        guard case .awaited = answer else { preconditionFailure("an exchange is answered twice; answer each once") }
        let socket = WebSocket(client.webSocketTerms, subprotocol)
        if handler.accept(socket, of: self) { return socket }
        fail(
            HTTPServer.Refusal(
                .upgradeRequired, "this resource speaks WebSocket", headerFields: [.upgrade: "websocket"]))
        return nil
    }

    /// Answers with an error, or, if the answer has begun, closes the connection. Other errors than a ``HTTPServer/Refusal``
    /// are answered with 500, and reported to the server's hook.
    public func fail(_ error: any Error) {
        guard handler != nil else { return }
        // The client is still reading an answer, for example that of a limit.
        if case .ended = answer { return }
        let refusal = error as? HTTPServer.Refusal
        if refusal == nil, !(error is HTTPServer.ExchangeError) { client.report(error, request) }
        if let limit = refusal?.limit { self.limit = limit }
        guard case .awaited = answer else { return cutOff(error as? HTTPServer.ExchangeError ?? .closed) }
        // The rest that the client sends is part of an unwanted body.
        if !body.isComplete || refusal?.limit == .bodyBytes { closes = true }
        let answer = refusal ?? HTTPServer.Refusal(.internalServerError, "the request failed")
        var response = HTTPServer.Response.text(answer.text.isEmpty ? "" : answer.text + "\n", answer.status)
        response.headerFields.append(contentsOf: answer.headerFields)
        respond(response)
        // The task may still wait for the body.
        cancelTask()
    }

    /// Closes the connection before the answer is complete.
    private func cutOff(_ error: HTTPServer.ExchangeError) {
        failure = error
        handler?.cutOff(self)
    }

    func drained() {
        guard case .body(let body) = answer else { return }
        body.drained()
        handlers.drain?(self)
    }

    // MARK: The task

    private enum Work {
        /// There is no task, or its first part is running.
        case beginning
        /// It is cancelled at the end of its first part.
        case cancelled
        case task(Task<Void, Never>)
    }
    private var work = Work.beginning

    /// Notes the task, whose first part has run.
    func began(_ task: Task<Void, Never>) {
        if case .cancelled = work { task.cancel() }
        work = .task(task)
    }

    func cancelTask() {
        if case .task(let task) = work { task.cancel() } else { work = .cancelled }
    }

    /// Answers with the response of a task.
    nonisolated(nonsending) func answer(with response: HTTPServer.Response) async throws {
        // The server may have answered meanwhile, because a limit was reached.
        guard handler != nil, case .awaited = answer else { return }
        switch response.content {
        case .bytes: respond(response)
        case .stream(let length, let write):
            begin(response.head, length: length)
            guard case .body(let body) = answer else { return }
            // The answer to `HEAD` has no body.
            if request.method != .head { try await write(HTTPBodyWriter(body)) }
            finish()
        case .webSocket(let subprotocol, let serve):
            if let socket = acceptWebSocket(subprotocol: subprotocol) { await self.serve(socket, serve) }
        }
    }

    private nonisolated(nonsending) func serve(_ socket: WebSocket, _ serve: @escaping WebSocket.Service) async {
        defer { socket.close() }
        do { try await serve(socket) } catch {
            if !(error is CancellationError), !(error is HTTPServer.ExchangeError) {
                client.report(error, request)
            }
            socket.close(1011)
        }
    }

    // MARK: The end

    /// Ends the exchange: no handler is called after ``closeHandler``.
    ///
    /// - Parameter error: `nil` if the answer is complete.
    func end(_ error: HTTPServer.ExchangeError?) {
        guard handler != nil else { return }
        handler = nil
        body.forgetChannel()
        let failure = failure ?? error
        body.fail(failure ?? .closed)
        if let failure {
            cancelTask()
            if case .body(let body) = answer {
                sent = body.sent
                body.end(failure)
            }
        }
        let close = handlers.close
        handlers = Handlers()
        close?(self, failure)
    }
}

@available(*, unavailable, message: "an exchange belongs to the thread of its loop")
extension HTTPExchange: Sendable {}
#endif
