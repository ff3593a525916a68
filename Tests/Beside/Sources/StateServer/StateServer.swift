import NIOCore
import NIOHTTP1
import NIOPosix
import RunLoopKit

/// State of the loop's thread.
public final class Station {
    public var readings = 0

    public init() {}
}

/// Answers each request with the state of the loop.
final class Answers: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let station: LoopBound<Station>

    init(_ station: LoopBound<Station>) {
        self.station = station
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .end = unwrapInboundIn(data) else { return }
        let answer = context.eventLoop.makeFutureWithTask { [station] in
            try await station.remote.run { _ in station.value.readings }
        }
        answer.assumeIsolated().whenComplete { [self] in respond(with: $0, in: context) }
    }

    private func respond(with answer: Result<Int, any Error>, in context: ChannelHandlerContext) {
        guard case .success(let readings) = answer else { return context.close(promise: nil) }
        let body = ByteBuffer(string: "readings: \(readings)\n")
        let headers: HTTPHeaders = ["Content-Length": "\(body.readableBytes)"]
        let head = HTTPResponseHead(version: .http1_1, status: .ok, headers: headers)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }
}

/// Serves the state of this thread's loop on NIO's threads.
public func serve(_ station: Station, on loop: RunLoop) async throws -> any Channel {
    let station = LoopBound(station, loop: loop)
    return try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .childChannelInitializer { channel in
            channel.pipeline.configureHTTPServerPipeline().flatMapThrowing {
                try channel.pipeline.syncOperations.addHandler(Answers(station))
            }
        }
        .bind(host: "127.0.0.1", port: 0).get()
}
