import NIOCore
import NIOHTTP1

/// Sends requests one after another over a connection.
final class DayConversation: ChannelInboundHandler {
    typealias InboundIn = NIOHTTPClientResponseFull
    typealias OutboundOut = HTTPClientRequestPart

    private var requests: [DayRequest]
    private let client: DayClient
    private var limit: Scheduled<Void>?

    init(_ requests: [DayRequest], by client: DayClient) {
        (self.requests, self.client) = (requests, client)
    }

    func channelActive(context: ChannelHandlerContext) {
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        // A link may be cut forever.
        limit = context.eventLoop.scheduleTask(in: .minutes(10)) { bound.value.close(promise: nil) }
        ask(context)
    }

    private func ask(_ context: ChannelHandlerContext) {
        guard let request = requests.first else { return context.close(promise: nil) }
        let (method, path, body): (HTTPMethod, String, [UInt8]) =
            switch request {
            case .echo(let number): (.POST, "/echo", Array("{\"message\":\"\(number)\"}".utf8))
            case .put(let name, let content): (.PUT, "/uploads/\(name)", content)
            case .get(let name): (.GET, "/uploads/\(name)", [])
            }
        let headers: HTTPHeaders = ["host": "web", "content-length": "\(body.count)"]
        let head = HTTPRequestHead(version: .http1_1, method: method, uri: path, headers: headers)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        if !body.isEmpty { context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: body)))), promise: nil) }
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let response = unwrapInboundIn(data)
        client.take(response, to: requests.removeFirst())
        if response.head.isKeepAlive { ask(context) } else { context.close(promise: nil) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        limit?.cancel()
        client.hasEnded()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }
}
