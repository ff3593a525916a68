#if Adapters
import NIOCore
import NIOTLS
import RunLoopHosts
import RunLoopKit
import RunLoopNIO
import RunLoopSimulation
import RunLoopTLS
import RunLoopUnix
import Synchronization
import TLSTestSupport
import TestSupport
import Testing

/// RunLoopUnix has a type of this name as well.
private typealias ByteBuffer = NIOCore.ByteBuffer

/// Logs the events of a channel, and sends a text when it is active.
private final class Talker: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let log: Log<String>
    private let text: String

    init(_ log: Log<String>, says text: String = "") {
        (self.log, self.text) = (log, text)
    }

    func channelActive(context: ChannelHandlerContext) {
        log("active")
        if !text.isEmpty { context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text)), promise: nil) }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case .handshakeCompleted(let chosen) = event as? TLSUserEvent else { return }
        let session = context.channel.tls
        let peer = session?.peerSubject ?? "anonymous"
        log("speaks \(chosen ?? "nothing") with \(session?.version ?? "no TLS"), \(peer)")
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        log("read \(String(buffer: unwrapInboundIn(data)))")
        if text.isEmpty { context.writeAndFlush(data, promise: nil) } else { context.close(promise: nil) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        log("\((error as? TLSError).map { "\($0.kind)" } ?? "\(error)")")
    }

    func channelInactive(context: ChannelHandlerContext) { log("inactive") }
}

@Suite("TLS below channels", .timeLimit(.minutes(15)))
struct TLSChannelTests {
    private let protocols = {
        var options = TLSOptions.patient
        options.applicationProtocols = ["h2", "http/1.1"]
        return options
    }()

    private func makeGroup() throws -> RunLoopEventLoopGroup { RunLoopEventLoopGroup(try LoopGroup(count: 2)) }

    private func listen(
        _ group: any EventLoopGroup, _ log: Log<String>, _ context: @escaping @Sendable () -> TLSServerContext
    ) async throws -> any Channel {
        try await RunLoopServerBootstrap(group: group)
            .childTLS(context)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Talker(log))
                }
            }
            .bind(host: "127.0.0.1", port: 0)
            .get()
    }

    private func connect(
        _ group: any EventLoopGroup, to server: any Channel, _ context: TLSClientContext, _ log: Log<String>,
        early: String = ""
    ) async throws -> any Channel {
        try await RunLoopClientBootstrap(group: group)
            .tls(context, serverName: "localhost")
            .channelInitializer { channel in
                channel.writeAndFlush(ByteBuffer(string: early)).whenFailure { error in
                    log("early: \((error as? TLSError).map { "\($0.kind)" } ?? "\(error)")")
                }
                return channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Talker(log, says: "hello"))
                }
            }
            .connect(to: try #require(server.localAddress))
            .get()
    }

    @Test("both sides agree on a protocol before the channel is active, and talk")
    func conversation() async throws {
        let group = try makeGroup()
        let (served, asked) = (Log<String>(), Log<String>())
        let contexts = try Contexts(protocols)
        let server = try await listen(group, served) { [context = contexts.server] in context }
        try await connect(group, to: server, contexts.client, asked).closeFuture.get()
        #expect(
            asked.entries == ["active", "speaks h2 with TLSv1.3, CN=server", "read hello", "inactive"])
        try await group.shutdownGracefully()
        #expect(served.entries == ["active", "speaks h2 with TLSv1.3, anonymous", "read hello", "inactive"])
    }

    @Test("an untrusted certificate closes the channel before it is active, with the reason on both sides")
    func strangers() async throws {
        let group = try makeGroup()
        let (served, asked) = (Log<String>(), Log<String>())
        let (contexts, others) = (try Contexts(protocols), try Contexts(protocols))
        let server = try await listen(group, served) { [context = contexts.server] in context }
        try await connect(group, to: server, others.client, asked, early: "lost").closeFuture.get()
        #expect(asked.entries == ["unknownIssuer", "early: unknownIssuer"])
        try await group.shutdownGracefully()
        #expect(served.entries == ["refusedByPeer"])
    }

    @Test("connecting fails for a name that no server can have")
    func impossibleName() async throws {
        let group = try makeGroup()
        let contexts = try Contexts(protocols)
        let server = try await listen(group, Log()) { [context = contexts.server] in context }
        await #expect(throws: TLSError.self) {
            _ = try await RunLoopClientBootstrap(group: group).tls(contexts.client, serverName: "")
                .connect(to: try #require(server.localAddress)).get()
        }
        try await group.shutdownGracefully()
    }

    @Test("new connections get the certificates of now")
    func reload() async throws {
        let group = try makeGroup()
        let contexts = try Contexts(protocols)
        let renewed = try TLSServerContext(
            identity: contexts.authority.identity(subject: "renewed"), options: protocols)
        let isRenewed = Flag()
        let server = try await listen(group, Log()) { [former = contexts.server] in isRenewed.isSet ? renewed : former }
        for subject in ["server", "renewed"] {
            let asked = Log<String>()
            try await connect(group, to: server, contexts.client, asked).closeFuture.get()
            #expect(asked.entries.contains("speaks h2 with TLSv1.3, CN=\(subject)"))
            isRenewed.set()
        }
        try await group.shutdownGracefully()
    }

    @Test("megabytes come through unchanged, in both directions and in pieces of all sizes", arguments: [1, 2, 3])
    func bulk(seed: UInt64) async throws {
        let group = try makeGroup()
        let contexts = try Contexts(protocols)
        let server = try await RunLoopServerBootstrap(group: group)
            .childTLS { [context = contexts.server] in context }
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Echo()) }
            }
            .bind(host: "127.0.0.1", port: 0)
            .get()
        var random = SeededGenerator(seed: seed)
        let sent = (0..<3_000_000).map { _ in UInt8.random(in: 0...255, using: &random) }
        var pieces: [ByteBuffer] = []
        var rest = sent[...]
        while !rest.isEmpty {
            let most = Bool.random(using: &random) ? 100 : 100_000
            pieces.append(ByteBuffer(bytes: rest.prefix(Int.random(in: 1...most, using: &random))))
            rest = rest.dropFirst(pieces.last!.readableBytes)
        }
        let echoed = group.next().makePromise(of: [UInt8].self)
        let channel = try await RunLoopClientBootstrap(group: group)
            .tls(contexts.client, serverName: "localhost")
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Collector(3_000_000, echoed))
                }
            }
            .connect(to: try #require(server.localAddress))
            .get()
        for piece in pieces { channel.write(piece, promise: nil) }
        channel.flush()
        #expect(try await echoed.futureResult.get() == sent, "seed \(seed)")
        try await group.shutdownGracefully()
    }

    @Test("hosts of a simulation speak TLS over a lossy link, the same for the same seed")
    func simulated() throws {
        let authority = Authority()
        let server = try TLSServerContext(
            identity: authority.identity(for: "DNS:server", bits: 2048), options: protocols)
        let client = try TLSClientContext(roots: authority.roots, options: protocols)
        func converse(seed: UInt64) -> [String] {
            let log = Log<String>()
            withSimulation(seed: seed) { simulation in
                let network = SimulatedNetwork(simulation)
                (network.link.latency, network.link.jitter, network.link.lossRate) = (
                    .milliseconds(20), .milliseconds(10), 0.1
                )
                network.addHost("server") { loop in
                    RunLoopServerBootstrap(group: loop.nio)
                        .childTLS { server }
                        .childChannelInitializer { channel in
                            channel.eventLoop.makeCompletedFuture {
                                try channel.pipeline.syncOperations.addHandler(Talker(log))
                            }
                        }
                        .bind(host: "0.0.0.0", port: 443)
                        .whenFailure { log("bind: \($0)") }
                }
                network.addHost("client") { loop in
                    RunLoopClientBootstrap(group: loop.nio)
                        .tls(client)
                        .channelInitializer { channel in
                            channel.closeFuture.whenComplete { _ in log("closed at \(channel.eventLoop.now)") }
                            return channel.eventLoop.makeCompletedFuture {
                                try channel.pipeline.syncOperations.addHandler(Talker(log, says: "hello"))
                            }
                        }
                        .connect(host: "server", port: 443)
                        .whenFailure { log("connect: \($0)") }
                }
                simulation.advance(by: .seconds(100))
            }
            return log.entries
        }
        let log = converse(seed: 5)
        #expect(log.count { $0 == "read hello" } == 2, "\(log)")
        #expect(log.contains("speaks h2 with TLSv1.3, CN=server"))
        #expect(converse(seed: 5) == log)
        #expect(converse(seed: 6) != log)
    }
}

private final class Echo: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { context.writeAndFlush(data, promise: nil) }
}

/// Fulfils a promise once it has received a number of bytes.
private final class Collector: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let count: Int
    private let promise: EventLoopPromise<[UInt8]>
    private var bytes: [UInt8] = []

    init(_ count: Int, _ promise: EventLoopPromise<[UInt8]>) {
        (self.count, self.promise) = (count, promise)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        bytes += unwrapInboundIn(data).readableBytesView
        if bytes.count == count { promise.succeed(bytes) }
    }

    func channelInactive(context: ChannelHandlerContext) { promise.fail(ChannelError.eof) }
}
#endif
