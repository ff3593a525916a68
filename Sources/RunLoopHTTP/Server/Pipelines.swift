#if Adapters
internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTP2
internal import NIOWebSocket
internal import RunLoopNIO
internal import Synchronization

/// The handlers of a connection after its ``ConnectionHandler``.
extension ChannelPipeline.SynchronousOperations {
    func addHTTP1(_ client: ServedClient, _ connection: ConnectionHandler) throws {
        let limits = client.settings.limits
        var decoderLimits = NIOHTTPDecoderLimitConfiguration()
        decoderLimits.maxHeaderFieldSize = limits.headBytes
        decoderLimits.maxHeaderListSize = limits.headBytes
        let decoder = HTTPRequestDecoder(leftOverBytesStrategy: .forwardBytes, limitConfiguration: decoderLimits)
        try addHandlers([ByteToMessageHandler(decoder), ExchangeHandler(client, connection)])
    }

    /// Adds the handlers that may make a connection a WebSocket, and passes them the request that asks for that.
    func considerUpgrade(
        _ head: HTTPRequestHead, for exchanges: ExchangeHandler, _ connection: ConnectionHandler, mostBytes: Int
    ) throws {
        let bound = NIOLoopBound((connection, exchanges), eventLoop: eventLoop)
        let webSocket = NIOWebSocketServerUpgrader(maxFrameSize: mostBytes, automaticErrorHandling: false) {
            channel, head in
            bound.value.1.considerUpgrade(head, on: channel.eventLoop)
        } upgradePipelineHandler: { channel, _ in
            channel.eventLoop.makeCompletedFuture { try bound.value.1.upgraded(channel) }
        }
        let decoder = try handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
        // For the answer that completes the upgrade; those of exchanges go past it.
        let encoder = HTTPResponseEncoder()
        try addHandler(encoder, position: .before(decoder))
        let upgrade = HTTPServerUpgradeHandler(
            upgraders: [webSocket], httpEncoder: encoder, extraHTTPHandlers: [decoder],
            upgradeCompletionHandler: { context in
                let (connection, exchanges) = bound.value
                connection.wasUpgraded()
                context.pipeline.syncOperations.removeHandler(exchanges, promise: nil)
            })
        try addHandler(upgrade, position: .before(exchanges))
        try context(handler: decoder).fireChannelRead(NIOAny(HTTPServerRequestPart.head(head)))
    }

    func addHTTP2(_ client: ServedClient, _ connection: ConnectionHandler) throws {
        let limits = client.settings.limits
        var configuration = NIOHTTP2Handler.Configuration()
        configuration.connection.initialSettings = [
            HTTP2Setting(parameter: .maxConcurrentStreams, value: limits.streams),
            HTTP2Setting(parameter: .maxHeaderListSize, value: limits.headBytes),
        ]
        configuration.connection.controlFrameRateLimit.maximumCount = limits.controlFrames
        configuration.stream.streamResetFrameRateLimit.maximumCount = limits.resets
        // The connection has the time without a stream. A timer here would be set anew after each stream.
        let untimed = NIOHTTP2ServerConnectionManagementHandler.Configuration(
            maxIdleTime: nil, maxAge: nil, maxGraceTime: nil, keepalive: nil)
        let management = NIOHTTP2ServerConnectionManagementHandler(eventLoop: eventLoop, configuration: untimed)
        let ends = HTTP2Ends(isClient: false)
        let bound = NIOLoopBound((client, connection), eventLoop: eventLoop)
        let protocolHandler = NIOHTTP2Handler(
            mode: .server, eventLoop: eventLoop, connectionConfiguration: configuration.connection,
            streamConfiguration: configuration.stream, streamDelegate: StreamEvents(management.http2StreamDelegate)
        ) { stream in
            let (client, connection) = bound.value
            connection.streamBegan()
            stream.closeFuture.whenComplete { _ in bound.value.1.streamEnded() }
            return stream.eventLoop.makeCompletedFuture {
                try stream.pipeline.syncOperations.addHandlers([
                    HTTP2FramePayloadToHTTP1ServerCodec(), ExchangeHandler(client, nil),
                ])
            }
        }
        try addHandlers([ends.frames, protocolHandler, management, ends])
        // The channel was active before these handlers were added, and the first of them keeps the event to itself.
        try context(handler: protocolHandler).fireChannelActive()
    }
}

/// The events of streams for the handler that ends a connection, as an object: SwiftNIO copies the value of such a delegate
/// thirty times for each stream.
///
/// A stream whose head is refused is closed before it is announced. The handler would trap, or count it as open for ever.
private final class StreamEvents: NIOHTTP2StreamDelegate {
    private let delegate: NIOHTTP2ServerConnectionManagementHandler.HTTP2StreamDelegate
    private let streams = Mutex((last: HTTP2StreamID.rootStream, closedEarly: HTTP2StreamID?.none))

    init(_ delegate: NIOHTTP2ServerConnectionManagementHandler.HTTP2StreamDelegate) {
        self.delegate = delegate
    }

    func streamCreated(_ id: HTTP2StreamID, channel: any Channel) {
        let isClosed = streams.withLock { streams in
            streams.last = id
            return streams.closedEarly.take() == id
        }
        if !isClosed { delegate.streamCreated(id, channel: channel) }
    }

    func streamClosed(_ id: HTTP2StreamID, channel: any Channel) {
        let isAnnounced = streams.withLock { streams in
            // The numbers of a client's streams grow.
            if id > streams.last { streams.closedEarly = id }
            return id <= streams.last
        }
        if isAnnounced { delegate.streamClosed(id, channel: channel) }
    }
}
#endif
