import NIOCore
import NIOHTTP1
import RunLoopKit
import RunLoopNIO

/// One of the clients of the day: it visits the daemon now and then, and checks each answer.
final class DayClient {
    private let loop: RunLoop
    private let name: String
    private let day: Day
    private var random: RunLoop.RandomNumbers
    private var uploads = 0
    private var stored: [String] = []

    init(_ number: Int, on loop: RunLoop, _ day: Day) {
        (self.loop, self.day) = (loop, day)
        name = "c\(number)"
        random = loop.randomNumbers
        rest()
    }

    private func rest() {
        loop.perform(afterDelay: .seconds(Int.random(in: 1...36_000, using: &random))) { [self] in visit() }
    }

    private func visit() {
        let requests = (0..<Int.random(in: 1...4, using: &random)).map { _ in request() }
        let bound = NIOLoopBound(self, eventLoop: loop.nio)
        RunLoopClientBootstrap(group: loop.nio)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHTTPClientHandlers()
                    try channel.pipeline.syncOperations.addHandlers([
                        NIOHTTPClientResponseAggregator(maxContentLength: 1 << 20),
                        DayConversation(requests, by: bound.value),
                    ])
                }
            }
            .connect(host: "web", port: 80)
            .whenFailure { _ in bound.value.rest() }
    }

    private func request() -> DayRequest {
        switch Int.random(in: 0..<4, using: &random) {
        case 0: return .put(newName(), content())
        case 1 where !stored.isEmpty: return .get(stored.randomElement(using: &random)!)
        default: return .echo(Int.random(in: 0..<1_000_000, using: &random))
        }
    }

    private func newName() -> String {
        uploads += 1
        return "\(name)-\(uploads)"
    }

    private static let bytes = (0..<20_000).map { UInt8(truncatingIfNeeded: $0 * $0 / 7) }

    private func content() -> [UInt8] {
        Array(Self.bytes[Int.random(in: 0...20_000, using: &random)...])
    }

    // MARK: Answers

    func take(_ response: NIOHTTPClientResponseFull, to request: DayRequest) {
        let body = response.body.map { Array($0.readableBytesView) } ?? []
        day.hasAnswered()
        switch (request, response.head.status) {
        case (.echo(let number), .ok):
            if body != Array("{\"message\":\"\(number)\"}\n".utf8) {
                day.fail("\(name) asked for \(number), got \(body)")
            }
        case (.put(let upload, let content), .created):
            stored.append(upload)
            day.acknowledge(upload, content)
        // The disk may be full.
        case (.put, .internalServerError) where day.isDiskFull: break
        case (.get(let upload), .ok):
            if body != day.stored[upload] { day.fail("\(name) asked for \(upload), got \(body.count) other bytes") }
        default: day.fail("\(name): \(request) is answered with \(response.head.status)")
        }
    }

    func hasEnded() {
        rest()
    }
}

/// A request of a client of the day.
enum DayRequest: CustomStringConvertible {
    case echo(Int)
    case put(String, [UInt8])
    case get(String)

    var description: String {
        switch self {
        case .echo(let number): "the echo of \(number)"
        case .put(let name, let content): "the upload of \(name), \(content.count) bytes"
        case .get(let name): "the upload \(name)"
        }
    }
}

/// Sends requests one after another over a connection.
private final class DayConversation: ChannelInboundHandler {
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
        // A link may be cut for ever.
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
