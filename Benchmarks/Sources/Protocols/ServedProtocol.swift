import NIOCore
import NIOHTTP1
import NIOHTTP2
import NIOWebSocket

/// The protocols of the server, by their names on the command line.
enum ServedProtocol: String {
    case echo, http1, http2, websocket

    /// Adds the handlers of a connection.
    @Sendable func prepare(_ channel: any Channel) -> EventLoopFuture<Void> {
        channel.eventLoop.makeCompletedFuture {
            let pipeline = channel.pipeline.syncOperations
            switch self {
            case .echo: try pipeline.addHandler(Echo())
            case .http1:
                try pipeline.configureHTTPServerPipeline()
                try pipeline.addHandler(Greeting())
            case .http2:
                _ = try pipeline.configureHTTP2Pipeline(
                    mode: .server, connectionConfiguration: .init(), streamConfiguration: .init()
                ) { stream in
                    stream.eventLoop.makeCompletedFuture {
                        let pipeline = stream.pipeline.syncOperations
                        try pipeline.addHandlers(HTTP2FramePayloadToHTTP1ServerCodec(), Greeting())
                    }
                }
            case .websocket: try upgrade(pipeline)
            }
        }
    }

    private func upgrade(_ pipeline: ChannelPipeline.SynchronousOperations) throws {
        let upgrader = NIOWebSocketServerUpgrader(
            shouldUpgrade: { channel, _ in channel.eventLoop.makeSucceededFuture([:]) },
            upgradePipelineHandler: { channel, _ in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(FrameEcho())
                }
            })
        try pipeline.configureHTTPServerPipeline(withServerUpgrade: ([upgrader], { _ in }))
    }
}
