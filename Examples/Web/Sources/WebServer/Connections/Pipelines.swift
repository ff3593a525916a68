internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTP2
internal import NIOWebSocket

/// The handlers of a connection after its ``ConnectionHandler``.
extension ChannelPipeline.SynchronousOperations {
    func addHTTP1(_ client: Client, _ connection: ConnectionHandler) throws {
        let limits = client.limits
        let requests = RequestHandler(client, connection)
        let handlers = NIOLoopBound((connection, requests), eventLoop: eventLoop)
        // The upgrade mechanism knows one upgrader for each protocol.
        let webSocket = NIOWebSocketServerUpgrader(maxFrameSize: limits.messageBytes) { channel, head in
            let isKnown = head.uri == "/chat" || head.uri == "/console/snapshots" && client.site.consoleAccess != nil
            let isOffered = isKnown && client.refusal == nil && client.site.isReady
            return channel.eventLoop.makeSucceededFuture(isOffered ? HTTPHeaders() : nil)
        } upgradePipelineHandler: { channel, head in
            channel.eventLoop.makeCompletedFuture {
                try channel.pipeline.syncOperations.addHandler(FrameRules())
                if head.uri != "/chat", let access = client.site.consoleAccess {
                    return try channel.pipeline.syncOperations.addHandler(ConsoleViewer(client, access))
                }
                try channel.pipeline.syncOperations.addHandlers([
                    NIOWebSocketFrameAggregator(
                        minNonFinalFragmentSize: 0, maxAccumulatedFrameCount: 1_024,
                        maxAccumulatedFrameSize: limits.messageBytes),
                    ChatMember(client),
                ])
            }
        }
        var decoderLimits = NIOHTTPDecoderLimitConfiguration()
        decoderLimits.maxHeaderFieldSize = limits.headBytes
        decoderLimits.maxHeaderListSize = limits.headBytes
        try configureHTTPServerPipeline(
            withServerUpgrade: (
                upgraders: [webSocket],
                completionHandler: { context in
                    let (connection, requests) = handlers.value
                    connection.wasUpgraded()
                    context.pipeline.syncOperations.removeHandler(requests, promise: nil)
                }
            ),
            withErrorHandling: false, withOutboundHeaderValidation: true, withEncoderConfiguration: .init(),
            withDecoderLimitConfiguration: decoderLimits)
        try addHandler(requests)
    }

    func addHTTP2(_ client: Client, _ connection: ConnectionHandler) throws {
        let limits = client.limits
        var configuration = NIOHTTP2Handler.Configuration()
        configuration.connection.initialSettings = [
            HTTP2Setting(parameter: .maxConcurrentStreams, value: limits.streams),
            HTTP2Setting(parameter: .maxHeaderListSize, value: limits.headBytes),
        ]
        configuration.connection.controlFrameRateLimit.maximumCount = limits.controlFrames
        configuration.stream.streamResetFrameRateLimit.maximumCount = limits.resets
        let idle = NIOHTTP2ServerConnectionManagementHandler.Configuration(
            maxIdleTime: TimeAmount(limits.idleTime), maxAge: nil, maxGraceTime: nil, keepalive: nil)
        let management = NIOHTTP2ServerConnectionManagementHandler(eventLoop: eventLoop, configuration: idle)
        let ends = HTTP2Ends(client)
        let bound = NIOLoopBound(connection, eventLoop: eventLoop)
        let protocolHandler = NIOHTTP2Handler(
            mode: .server, eventLoop: eventLoop, connectionConfiguration: configuration.connection,
            streamConfiguration: configuration.stream, streamDelegate: management.http2StreamDelegate
        ) { stream in
            bound.value.streamBegan()
            stream.closeFuture.whenComplete { _ in bound.value.streamEnded() }
            return stream.eventLoop.makeCompletedFuture {
                try stream.pipeline.syncOperations.addHandlers([
                    HTTP2FramePayloadToHTTP1ServerCodec(), RequestHandler(client, nil),
                ])
            }
        }
        try addHandlers([ends.frames, protocolHandler, management, ends])
        // The channel was active before these handlers were added, and the first of them keeps the event to itself.
        try context(handler: protocolHandler).fireChannelActive()
    }
}
