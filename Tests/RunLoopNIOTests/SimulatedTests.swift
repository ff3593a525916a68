#if Adapters
import NIOCore
import NIOHTTP1
import RunLoopHosts
import RunLoopKit
import RunLoopNIO
import RunLoopSimulation
import RunLoopUnix
import TestSupport
import Testing

/// Answers each request with its path.
private final class Router: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private var path = ""

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): path = head.uri
        case .body: break
        case .end:
            let body = ByteBuffer(string: "you asked for \(path)")
            let headers: HTTPHeaders = ["content-length": "\(body.readableBytes)"]
            let head = HTTPResponseHead(version: .http1_1, status: .ok, headers: headers)
            context.write(wrapOutboundOut(.head(head)), promise: nil)
            context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        }
    }
}

/// Sends requests one after another.
private final class Asker: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundOut = HTTPClientRequestPart

    private var left: Int
    private let log: Log<String>

    init(requests: Int, _ log: Log<String>) {
        (left, self.log) = (requests, log)
    }

    func channelActive(context: ChannelHandlerContext) { ask(context) }

    private func ask(_ context: ChannelHandlerContext) {
        guard left > 0 else { return context.close(promise: nil) }
        let head = HTTPRequestHead(
            version: .http1_1, method: .GET, uri: "/\(left)", headers: ["host": "server"])
        left -= 1
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): log("\(context.eventLoop.now.uptimeNanoseconds / 1_000) \(head.status)")
        case .body(let body): log(String(buffer: body))
        case .end: ask(context)
        }
    }

    func channelInactive(context: ChannelHandlerContext) { log("closed") }
}

/// Answers input with ten times as much, and notes the largest waiting output.
private final class Verbose: ChannelInboundHandler {
    typealias InboundIn = NIOCore.ByteBuffer
    typealias OutboundOut = NIOCore.ByteBuffer

    private let log: Log<Int>

    init(_ log: Log<Int>) {
        self.log = log
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        for _ in 0..<10 { context.write(data, promise: nil) }
        context.flush()
        log.append((try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0)
    }
}

/// Sends a megabyte, and reads nothing before the test allows it.
private final class Talker: ChannelInboundHandler {
    typealias InboundIn = NIOCore.ByteBuffer
    typealias OutboundOut = NIOCore.ByteBuffer

    static let count = 1_000_000
    private let received: Log<Int>

    init(_ received: Log<Int>) {
        self.received = received
    }

    func channelActive(context: ChannelHandlerContext) {
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(repeating: 1, count: Self.count)), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        received.append(unwrapInboundIn(data).readableBytes)
    }
}

/// Closes its channel a second after it was asked to finish, or never.
private final class Finisher: ChannelInboundHandler {
    typealias InboundIn = NIOCore.ByteBuffer

    private let closes: Bool
    private let log: Log<String>

    init(closes: Bool, _ log: Log<String>) {
        (self.closes, self.log) = (closes, log)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event is ChannelShouldQuiesceEvent else { return context.fireUserInboundEventTriggered(event) }
        let tenths = RunLoop.current.now.nanoseconds / 100_000_000
        log("\(context.channel.isActive ? "asked" : "too early") \(tenths)")
        guard closes else { return }
        let context = NIOLoopBound(context, eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: .seconds(1)) { context.value.close(promise: nil) }
    }
}

@Suite("SwiftNIO's handlers in the simulated world")
struct SimulatedTests {
    /// Serves HTTP on a host, to which a client on another host sends requests, and returns the client's log.
    private func converse(seed: UInt64, link: NetworkLink, requests: Int = 20) -> [String] {
        let log = Log<String>()
        withSimulation(seed: seed) { simulation in
            let network = SimulatedNetwork(simulation)
            network.addHost("server") { loop in
                RunLoopServerBootstrap(group: loop.nio)
                    .childChannelInitializer { channel in
                        channel.eventLoop.makeCompletedFuture {
                            try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                            try channel.pipeline.syncOperations.addHandler(Router())
                        }
                    }
                    .bind(host: "0.0.0.0", port: 80)
                    .whenFailure { log("bind: \($0)") }
            }
            network.addHost("client") { loop in
                RunLoopClientBootstrap(group: loop.nio)
                    .channelInitializer { channel in
                        channel.eventLoop.makeCompletedFuture {
                            try channel.pipeline.syncOperations.addHTTPClientHandlers()
                            try channel.pipeline.syncOperations.addHandler(Asker(requests: requests, log))
                        }
                    }
                    .connect(host: "server", port: 80)
                    .whenFailure { log("connect: \($0)") }
            }
            network.link = link
            simulation.advance(by: .seconds(600))
        }
        return log.entries
    }

    @Test(
        "a channel is read although its output waits, unless a handler holds that back; nothing is lost",
        arguments: [false, true])
    func backPressure(isHeldBack: Bool) throws {
        let (waiting, received) = (Log<Int>(), Log<Int>())
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            network.addHost("server") { loop in
                RunLoopServerBootstrap(group: loop.nio)
                    .childChannelInitializer { channel in
                        channel.eventLoop.makeCompletedFuture {
                            let handlers = channel.pipeline.syncOperations
                            if isHeldBack { try handlers.addHandler(BackPressureHandler()) }
                            try handlers.addHandler(Verbose(waiting))
                        }
                    }
                    .bind(host: "0.0.0.0", port: 7)
                    .whenFailure { Issue.record("\($0)") }
            }
            let client = RunLoopClientBootstrap(group: simulation.loop.nio)
                .channelOption(.autoRead, value: false)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(Talker(received))
                    }
                }
                .connect(host: "server", port: 7)
            simulation.advance(by: .seconds(60))
            let most = waiting.entries.max() ?? 0
            // The high mark, and ten times the largest read; or nearly all.
            #expect(isHeldBack ? most < 800_000 : most > 5_000_000, "\(most) bytes have waited")
            client.whenSuccess { $0.setOption(.autoRead, value: true).whenFailure { Issue.record("\($0)") } }
            simulation.advance(by: .seconds(60))
        }
        #expect(received.entries.reduce(0, +) == 10 * Talker.count)
    }

    @Test("HTTP is served over a slow and lossy link, the same for the same seed")
    func http() {
        var link = NetworkLink()
        (link.latency, link.jitter, link.lossRate) = (.milliseconds(20), .milliseconds(5), 0.1)
        let log = converse(seed: 7, link: link)
        #expect(log.count { $0.hasSuffix(" 200 OK") } == 20 && log.last == "closed", "\(log)")
        // Some bodies come in pieces.
        let bodies = log.filter { !$0.hasSuffix(" 200 OK") }.joined()
        let expected = (1...20).reversed().map { "you asked for /\($0)" }.joined()
        #expect(bodies == expected + "closed")
        #expect(converse(seed: 7, link: link) == log)
        #expect(converse(seed: 8, link: link) != log)
    }

    @Test(
        "a server that quiesces asks each connection once, also one that comes later, and waits for the last to close",
        arguments: [true, false])
    func quiescing(closes: Bool) {
        let log = Log<String>()
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            network.addHost("server") { loop in
                let group = RunLoopEventLoopGroup(try LoopGroup(count: 2))
                let bootstrap = RunLoopServerBootstrap(group: loop.nio, childGroup: group)
                    .childChannelInitializer { channel in
                        channel.closeFuture.whenComplete { _ in log("closed") }
                        return channel.eventLoop.makeCompletedFuture {
                            try channel.pipeline.syncOperations.addHandler(Finisher(closes: closes, log))
                        }
                    }
                bootstrap.bind(host: "0.0.0.0", port: 7).whenFailure { Issue.record("\($0)") }
                for second in [2, 4] as [Double] {
                    loop.perform(at: seconds(second)) {
                        bootstrap.quiesce().whenSuccess {
                            log("none left at \(RunLoop.current.now.nanoseconds / 100_000_000)")
                        }
                    }
                }
                if !closes {
                    loop.perform(at: seconds(5)) {
                        bootstrap.closeConnections().whenSuccess { log("closed all") }
                    }
                }
            }
            for delay in [0.5, 0.5, 0.5, 2.5] {
                simulation.loop.perform(at: seconds(delay)) {
                    RunLoopClientBootstrap(group: simulation.loop.nio).connect(host: "server", port: 7)
                        .whenFailure { Issue.record("\($0)") }
                }
            }
            simulation.advance(by: .seconds(20))
        }
        let ends =
            closes ? ["none left at 35", "none left at 40"] : ["none left at 50", "none left at 50", "closed all"]
        let expected = ["asked 20", "asked 20", "asked 20", "asked 25", "closed", "closed", "closed", "closed"] + ends
        #expect(log.entries == expected)
    }

    @Test("a port without a listener refuses")
    func refused() {
        let log = Log<String>()
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            network.addHost("server") { _ in }
            network.addHost("client") { loop in
                RunLoopClientBootstrap(group: loop.nio).connect(host: "server", port: 80).whenFailure { error in
                    log("\((error as? IOError)?.errnoCode ?? 0)")
                }
            }
            simulation.advance(by: .seconds(60))
        }
        #expect(log.entries == ["111"])
    }

    @Test("the end of a loop closes its channels, and fails whatever is under way")
    func end() {
        let log = Log<String>()
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            network.addHost("server") { loop in
                RunLoopServerBootstrap(group: loop.nio)
                    .bind(host: "0.0.0.0", port: 80)
                    .whenSuccess { $0.closeFuture.whenComplete { _ in log("listener closed") } }
            }
            let dark = network.addHost("dark", addresses: ["10.9.9.9"]) { _ in }
            let client = network.addHost("client") { loop in
                let bootstrap = RunLoopClientBootstrap(group: loop.nio)
                bootstrap.connect(host: "server", port: 80).whenSuccess { channel in
                    log("connected")
                    channel.closeFuture.whenComplete { _ in log("closed") }
                }
                bootstrap.connect(host: "dark", port: 80).whenFailure { log("by name: \($0)") }
                bootstrap.connect(to: try SocketAddress(ipAddress: "10.9.9.9", port: 80)).whenFailure {
                    log("by address: \($0)")
                }
            }
            network.cut(between: client, and: dark)
            simulation.advance(by: .seconds(1))
        }
        let shutdown = EventLoopError.shutdown
        #expect(log.entries.first == "connected")
        #expect(
            log.entries.sorted() == [
                "by address: \(shutdown)", "by name: \(shutdown)", "closed", "connected", "listener closed",
            ])
    }
}
#endif
