#if Adapters
internal import HTTPTypes
internal import NIOCore
internal import NIOHTTP1
internal import NIOWebSocket
@_spi(Ports) internal import RunLoopKit
internal import RunLoopNIO
internal import RunLoopTLS

/// The connection of a client's WebSocket, from its beginning to its end. On the loop's thread.
final class WebSocketDial {
    private let request: HTTPRequest
    private let subprotocols: [String]
    private let loop: RunLoop
    private let modes: RunLoop.Modes
    private let options: HTTPClient.Options
    private let wait: NamedWait
    private var channel: (any Channel)?
    /// The outcome of the handshake; `nil` before.
    private var result: Result<WebSocket, HTTPClient.Failure>?

    /// Called when the connection has closed, or could not be made.
    var ended: () -> Void = {}

    init(
        _ request: HTTPRequest, _ subprotocols: [String], on loop: RunLoop, inModes modes: RunLoop.Modes,
        _ options: HTTPClient.Options
    ) {
        (self.request, self.subprotocols, self.options) = (request, subprotocols, options)
        (self.loop, self.modes) = (loop, modes)
        wait = NamedWait(loop.remote, "waits for the agreement of a WebSocket's server")
    }

    var isOpen: Bool { (try? result?.get()) != nil }

    /// Waits for the end of the handshake.
    nonisolated(nonsending) func open(_ origin: Origin, _ tls: TLSClientContext?) async throws -> WebSocket {
        connect(origin, tls)
        while true {
            if let result { return try result.get() }
            do { try await wait.wait() } catch {
                finish(.failure(.closed))
                throw error
            }
        }
    }

    private func connect(_ origin: Origin, _ tls: TLSClientContext?) {
        let eventLoop = loop.nio(inModes: modes)
        var bootstrap = RunLoopClientBootstrap(group: eventLoop)
            .connectTimeout(TimeAmount(options.connectTime))
            .channelOption(.maxMessagesPerRead, value: 1)
        if let tls { bootstrap = bootstrap.tls(tls) }
        let bound = NIOLoopBound(self, eventLoop: eventLoop)
        bootstrap.channelInitializer { channel in
            channel.eventLoop.makeCompletedFuture { try bound.value.prepare(channel) }
        }
        .connect(host: origin.host, port: origin.port).assumeIsolated().whenFailure { [self] error in
            finish(.failure(.unreachable(error)))
            end()
        }
    }

    /// Adds the handlers of the handshake.
    private func prepare(_ channel: any Channel) throws {
        // The program may have given up meanwhile.
        if case .failure(let failure) = result { throw failure }
        self.channel = channel
        channel.closeFuture.assumeIsolated().whenComplete { [self] _ in
            finish(.failure(.closed))
            end()
        }
        let key = NIOWebSocketClientUpgrader.randomRequestKey(using: &loop.randomNumbers)
        let handshake = Handshake(self, request, subprotocols)
        let bound = NIOLoopBound((self, handshake), eventLoop: channel.eventLoop)
        let upgrader = NIOWebSocketClientUpgrader(
            requestKey: key, maxFrameSize: options.messageBytes, automaticErrorHandling: false
        ) { channel, head in
            channel.eventLoop.makeCompletedFuture { try bound.value.0.agreed(head, channel) }
        }
        var limits = NIOHTTPDecoderLimitConfiguration()
        limits.maxHeaderFieldSize = options.headBytes
        limits.maxHeaderListSize = options.headBytes
        var encoder = HTTPRequestEncoder.Configuration()
        encoder.automaticallySetFramingHeaders = false
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHTTPClientHandlers(
            leftOverBytesStrategy: .forwardBytes, enableOutboundHeaderValidation: true, encoderConfiguration: encoder,
            decoderLimitConfiguration: limits,
            withClientUpgrade: (
                upgraders: [upgrader],
                completionHandler: { context in
                    context.pipeline.syncOperations.removeHandler(bound.value.1, promise: nil)
                }
            ))
        try pipeline.addHandler(handshake)
    }

    /// Adds the handlers of the WebSocket, if the server has agreed to the client's request and to nothing else.
    private func agreed(_ head: HTTPResponseHead, _ channel: any Channel) throws {
        let subprotocol = head.headers.first(name: "sec-websocket-protocol")
        do {
            guard head.headers[canonicalForm: "connection"].contains(where: { $0.lowercased() == "upgrade" }) else {
                throw HandshakeError("it does not name the upgrade in its field Connection")
            }
            guard !head.headers.contains(name: "sec-websocket-extensions") else {
                throw HandshakeError("it has chosen an extension, and none was offered")
            }
            guard head.headers["sec-websocket-protocol"].count < 2, subprotocol.map(subprotocols.contains) ?? true
            else {
                throw HandshakeError("it has chosen a subprotocol that was not offered")
            }
            let terms = WebSocketTerms(
                loop: loop, modes: modes, isClient: true, idleTime: options.idleTime, stallTime: options.stallTime,
                messageBytes: options.messageBytes, unreadBytes: options.unreadBytes,
                error: { HTTPClient.Failure($0) })
            let socket = WebSocket(terms, subprotocol)
            try channel.pipeline.syncOperations.addWebSocket(socket)
            finish(.success(socket))
        } catch {
            finish(.failure(.malformed(error)))
            throw error
        }
    }

    /// Notes the outcome of the handshake; the first one counts.
    fileprivate func finish(_ result: Result<WebSocket, HTTPClient.Failure>) {
        guard self.result == nil else { return }
        self.result = result
        wait.end()
        if case .failure = result { channel?.close(promise: nil) }
    }

    /// Closes the WebSocket, or gives up its handshake.
    func close() {
        if case .success(let socket) = result { socket.close(1001) } else { finish(.failure(.clientClosed)) }
    }

    private func end() {
        channel = nil
        let ended = ended
        self.ended = {}
        ended()
    }
}

/// The reason why an agreement on WebSocket is none.
private struct HandshakeError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// Sends the request for a WebSocket when the connection is active, and receives the answer of a server that refuses.
private final class Handshake: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundOut = HTTPClientRequestPart

    private let dial: WebSocketDial
    private let request: HTTPRequest
    private let subprotocols: [String]
    private var isActive = false

    init(_ dial: WebSocketDial, _ request: HTTPRequest, _ subprotocols: [String]) {
        (self.dial, self.request, self.subprotocols) = (dial, request, subprotocols)
    }

    func channelActive(context: ChannelHandlerContext) {
        isActive = true
        var headers: HTTPHeaders = ["Host": request.authority ?? ""]
        headers.add(contentsOf: HTTPHeaders(request.headerFields))
        if !subprotocols.isEmpty {
            headers.add(name: "Sec-WebSocket-Protocol", value: subprotocols.joined(separator: ", "))
        }
        let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: request.path ?? "/", headers: headers)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .head(let head) = unwrapInboundIn(data) else { return }
        dial.finish(
            .failure(HTTPResponse(head).map { .notUpgraded($0) } ?? .malformed(HTTPParserError.invalidHeaderToken)))
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        case HTTPParserError.invalidEOFState: dial.finish(.failure(.closed))
        case is NIOHTTPClientUpgradeError, is HTTPParserError: dial.finish(.failure(.malformed(error)))
        default: dial.finish(.failure(isActive ? .closed : .unreachable(error)))
        }
    }
}
#endif
