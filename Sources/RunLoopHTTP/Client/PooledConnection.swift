#if Adapters
internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTP2
internal import NIOTLS
@_spi(Ports) internal import RunLoopKit
internal import RunLoopNIO

/// A connection of a client, which has one exchange at a time, or with HTTP/2 many. On the loop's thread.
final class PooledConnection {
    private let loop: RunLoop
    private let modes: RunLoop.Modes
    private let options: HTTPClient.Options
    private let isSecure: Bool
    private var channel: (any Channel)?
    private var handler: AnswerHandler?
    private var multiplexer: NIOHTTP2Handler.StreamMultiplexer?
    private var streams = 0
    /// The last stream that a server which goes begins with.
    private var lastStream = HTTP2StreamID.maxID
    /// True if the connection has had an exchange.
    var isUsed = false
    let idleTime: Deadline

    /// Called when the connection can have its first exchange, or cannot be made.
    var ready: (Result<Void, any Error>) -> Void = { _ in }
    /// Called when an exchange has ended, and the connection can have another one.
    var released: (PooledConnection) -> Void = { _ in }
    /// Called when the connection can have no further exchange.
    var lost: (PooledConnection) -> Void = { _ in }

    init(on loop: RunLoop, inModes modes: RunLoop.Modes, _ options: HTTPClient.Options, isSecure: Bool) {
        (self.loop, self.modes, self.options, self.isSecure) = (loop, modes, options, isSecure)
        idleTime = Deadline(on: loop, inModes: modes)
        idleTime.reached = { [unowned self] in close() }
    }

    var isMultiplexed: Bool { multiplexer != nil }

    /// Adds the handler that waits for the agreement on the version of HTTP.
    func prepare(_ channel: any Channel) throws {
        self.channel = channel
        channel.closeFuture.assumeIsolated().whenComplete { [self] _ in
            idleTime.cancel()
            ready(.failure(ChannelError.eof))
            lost(self)
            (ready, released, lost) = ({ _ in }, { _ in }, { _ in })
        }
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(Agreement(self, isSecure: isSecure))
    }

    fileprivate func configure(isHTTP2: Bool, _ context: ChannelHandlerContext) throws {
        let pipeline = context.pipeline.syncOperations
        if isHTTP2 {
            let handler = NIOHTTP2Handler(
                mode: .client, eventLoop: context.eventLoop, connectionConfiguration: .init(),
                streamConfiguration: .init()
            ) { $0.close() }
            let ends = HTTP2Ends(isClient: true)
            try pipeline.addHandlers([ends.frames, handler, Farewell(self), ends])
            multiplexer = try handler.syncMultiplexer()
            try pipeline.context(handler: handler).fireChannelActive()
        } else {
            var limits = NIOHTTPDecoderLimitConfiguration()
            limits.maxHeaderFieldSize = options.headBytes
            limits.maxHeaderListSize = options.headBytes
            var encoder = HTTPRequestEncoder.Configuration()
            encoder.automaticallySetFramingHeaders = false
            try pipeline.addHTTPClientHandlers(
                leftOverBytesStrategy: .dropBytes, enableOutboundHeaderValidation: true,
                encoderConfiguration: encoder, decoderLimitConfiguration: limits, withClientUpgrade: nil)
            let handler = AnswerHandler(isStream: false, on: loop, inModes: modes, options)
            handler.ended = { [self] isOpen in isOpen ? released(self) : lost(self) }
            try pipeline.addHandler(handler)
            self.handler = handler
        }
    }

    /// Returns a handler for the next exchange; `nil` if the connection has closed meanwhile.
    nonisolated(nonsending) func handler() async throws -> AnswerHandler? {
        guard let channel, channel.isActive else { return nil }
        guard let multiplexer else { return handler }
        idleTime.cancel()
        streams += 1
        let loop = loop
        let handler: AnswerHandler? = try await loop.awaitCompletion { [self] complete in
            let handler = AnswerHandler(isStream: true, on: loop, inModes: modes, options)
            handler.isBegun = { [self] stream in stream <= lastStream }
            let promise = channel.eventLoop.makePromise(of: (any Channel).self)
            let bound = NIOLoopBound(handler, eventLoop: channel.eventLoop)
            multiplexer.createStreamChannel(promise: promise) { stream in
                stream.eventLoop.makeCompletedFuture {
                    try stream.pipeline.syncOperations.addHandlers([
                        HTTP2FramePayloadToHTTP1ClientCodec(httpProtocol: .https), bound.value,
                    ])
                }
            }
            promise.futureResult.assumeIsolated().whenComplete { result in
                guard case .success(let stream) = result else {
                    self.streamEnded()
                    return complete(nil)
                }
                stream.closeFuture.assumeIsolated().whenComplete { _ in self.streamEnded() }
                complete(handler)
            }
            return {}
        }
        return handler
    }

    private func streamEnded() {
        streams -= 1
        if streams == 0 { idleTime.set(after: isRetired ? .zero : options.idleTime) }
    }

    private var isRetired = false

    /// Closes a connection of HTTP/2 when it has no streams.
    func closeWhenUnused() {
        isRetired = true
        if streams == 0 { close() }
    }

    fileprivate func isLeaving(after stream: HTTP2StreamID) {
        lastStream = stream
        lost(self)
    }

    func close() {
        channel?.close(promise: nil)
    }
}

/// Adds the handlers of a connection when it is active and, with TLS, both sides have agreed on the version of HTTP.
private final class Agreement: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    private let connection: PooledConnection
    private let isSecure: Bool
    private var error: (any Error)?

    init(_ connection: PooledConnection, isSecure: Bool) {
        (self.connection, self.isSecure) = (connection, isSecure)
    }

    func channelActive(context: ChannelHandlerContext) {
        if !isSecure { agreed(isHTTP2: false, context) }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case TLSUserEvent.handshakeCompleted(let version)? = event as? TLSUserEvent else {
            return context.fireUserInboundEventTriggered(event)
        }
        agreed(isHTTP2: version == "h2", context)
    }

    private func agreed(isHTTP2: Bool, _ context: ChannelHandlerContext) {
        do {
            try connection.configure(isHTTP2: isHTTP2, context)
            context.pipeline.syncOperations.removeHandler(self, promise: nil)
            connection.ready(.success(()))
        } catch {
            connection.ready(.failure(error))
            context.close(promise: nil)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        connection.ready(.failure(error))
        context.close(promise: nil)
    }
}

/// Notes that a server of HTTP/2 takes no further streams.
private final class Farewell: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame

    private let connection: PooledConnection

    init(_ connection: PooledConnection) {
        self.connection = connection
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if case .goAway(let last, _, _) = unwrapInboundIn(data).payload { connection.isLeaving(after: last) }
        context.fireChannelRead(data)
    }
}
#endif
