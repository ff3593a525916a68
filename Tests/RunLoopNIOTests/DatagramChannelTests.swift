#if Adapters
import Glibc
import NIOCore
import RunLoopHosts
import RunLoopKit
import RunLoopNIO
import RunLoopSimulation
import RunLoopUnix
import TestSupport
import Testing

/// RunLoopUnix has a type of this name as well.
private typealias ByteBuffer = NIOCore.ByteBuffer
private typealias Envelope = AddressedEnvelope<NIOCore.ByteBuffer>

/// Sends each datagram back.
private final class Echo: ChannelInboundHandler {
    typealias InboundIn = Envelope

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { context.write(data, promise: nil) }
    func channelReadComplete(context: ChannelHandlerContext) { context.flush() }
}

/// Logs datagrams and errors.
private final class Logger: ChannelInboundHandler {
    typealias InboundIn = Envelope

    private let log: Log<String>

    init(_ log: Log<String>) { self.log = log }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { log(String(buffer: unwrapInboundIn(data).data)) }
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        log("\((error as? IOError)?.errnoCode ?? 0)")
    }
    func channelInactive(context: ChannelHandlerContext) { log("inactive") }
}

/// Logs datagrams and the facts about them.
private final class FactLogger: ChannelInboundHandler {
    typealias InboundIn = Envelope

    private let log: Log<String>

    init(_ log: Log<String>) { self.log = log }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let envelope = unwrapInboundIn(data)
        let (state, info) = (envelope.metadata?.ecnState, envelope.metadata?.packetInfo)
        log(
            "\(String(buffer: envelope.data)) from \(envelope.remoteAddress.ipAddress ?? "nil"), \(state.map { "\($0)" } ?? "nil"), "
                + (info.map { "\($0)" } ?? "nil"))
    }
}

@Suite("Channels of datagrams", .timeLimit(.minutes(15)))
struct DatagramChannelTests {
    private func makeGroup() throws -> RunLoopEventLoopGroup { RunLoopEventLoopGroup(try LoopGroup(count: 1)) }

    private func bootstrap(
        _ group: any EventLoopGroup, _ handler: @escaping @Sendable () -> any ChannelHandler
    ) -> RunLoopDatagramBootstrap {
        RunLoopDatagramBootstrap(group: group).channelInitializer { channel in
            channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(handler()) }
        }
    }

    @Test("envelopes go to a peer and come back, and each promise succeeds")
    func echo() async throws {
        let group = try makeGroup()
        let log = Log<String>()
        let server = try await bootstrap(group) { Echo() }.bind(host: "127.0.0.1", port: 0).get()
        let address = try #require(server.localAddress)
        let client = try await bootstrap(group) { Logger(log) }.bind(host: "127.0.0.1", port: 0).get()
        for number in 0..<100 {
            try await client.writeAndFlush(
                Envelope(remoteAddress: address, data: ByteBuffer(string: "\(number)")))
            try await comesTrue { log.entries.count == number + 1 }
        }
        #expect(log.entries == (0..<100).map { "\($0)" })
        try await group.shutdownGracefully()
        #expect(log.entries.last == "inactive")
    }

    @Test("a connected channel takes plain buffers, and reports a refusal by an absent peer")
    func connected() async throws {
        let group = try makeGroup()
        let log = Log<String>()
        let server = try await bootstrap(group) { Echo() }.bind(host: "127.0.0.1", port: 0).get()
        let client = try await bootstrap(group) { Logger(log) }.connect(to: try #require(server.localAddress)).get()
        #expect(client.remoteAddress == server.localAddress)
        try await client.writeAndFlush(ByteBuffer(string: "hello"))
        try await comesTrue { log.entries == ["hello"] }
        try await server.close()
        try await client.writeAndFlush(ByteBuffer(string: "lost"))
        try await comesTrue { log.entries == ["hello", "\(ECONNREFUSED)"] }
        #expect(client.isActive)
        try await group.shutdownGracefully()
    }

    @Test(
        "envelopes have the asked address and the mark for congestion, and an echo of them reaches a connected client")
    func packetInfo() async throws {
        let group = try makeGroup()
        let log = Log<String>()
        let server = try await bootstrap(group) { Echo() }
            .channelOption(ChannelOptions.receivePacketInfo, value: true)
            .channelOption(ChannelOptions.explicitCongestionNotification, value: true)
            .bind(host: "0.0.0.0", port: 0).get()
        #expect(try await server.getOption(ChannelOptions.receivePacketInfo).get())
        let port = try #require(server.localAddress?.port)
        let asked = try SocketAddress(ipAddress: "127.0.0.2", port: port)
        let client = try await bootstrap(group) { FactLogger(log) }
            .channelOption(ChannelOptions.explicitCongestionNotification, value: true)
            .connect(to: asked).get()
        let metadata = Envelope.Metadata(ecnState: .transportCapableFlag0)
        try await client.writeAndFlush(
            Envelope(remoteAddress: asked, data: ByteBuffer(string: "hello"), metadata: metadata))
        try await comesTrue { !log.entries.isEmpty }
        #expect(log.entries == ["hello from 127.0.0.2, transportCapableFlag0, nil"])
        await #expect(throws: ChannelError.self) {
            let metadata = Envelope.Metadata(ecnState: .transportNotCapable, packetInfo: nil, segmentSize: 1)
            try await client.writeAndFlush(
                Envelope(remoteAddress: asked, data: ByteBuffer(string: "hello"), metadata: metadata))
        }
        try await group.shutdownGracefully()
    }

    @Test("a datagram that is too long, or without a receiver, fails its own promise only")
    func failures() async throws {
        let group = try makeGroup()
        let log = Log<String>()
        let server = try await bootstrap(group) { Logger(log) }.bind(host: "127.0.0.1", port: 0).get()
        let address = try #require(server.localAddress)
        let client = try await bootstrap(group) { Logger(log) }.bind(host: "127.0.0.1", port: 0).get()
        let envelopes = [1, 70_000, 2].map {
            Envelope(remoteAddress: address, data: ByteBuffer(repeating: 48 + UInt8($0 % 10), count: $0))
        }
        let all = client.eventLoop.flatSubmit {
            let writes = envelopes.map { client.write($0) } + [client.write(ByteBuffer(string: "to nobody"))]
            client.flush()
            return EventLoopFuture.whenAllComplete(writes, on: client.eventLoop)
        }
        let results = try await all.get().map { result -> Int32 in
            guard case .failure(let error) = result else { return 0 }
            return (error as? IOError)?.errnoCode ?? -1
        }
        #expect(results == [0, EMSGSIZE, 0, EDESTADDRREQ])
        try await comesTrue { log.entries == ["1", "22"] }
        try await group.shutdownGracefully()
    }

    @Test("without autoRead a datagram waits until it is asked for")
    func pulled() async throws {
        let group = try makeGroup()
        let log = Log<String>()
        let server = try await bootstrap(group) { Logger(log) }
            .channelOption(ChannelOptions.autoRead, value: false)
            .channelOption(ChannelOptions.maxMessagesPerRead, value: 1)
            .channelOption(ChannelOptions.datagramVectorReadMessageCount, value: 1)
            .bind(host: "127.0.0.1", port: 0).get()
        let client = try await bootstrap(group) { Echo() }.connect(to: try #require(server.localAddress)).get()
        for text in ["1", "2", "3"] { try await client.writeAndFlush(ByteBuffer(string: text)) }
        for count in 1...3 {
            server.read()
            try await comesTrue { log.entries.count >= count }
            // Another datagram would have come meanwhile.
            try await Task.sleep(for: .milliseconds(5))
            #expect(log.entries == (1...count).map { "\($0)" })
        }
        try await group.shutdownGracefully()
    }

    @Test("writability follows the bytes that wait, and comes back when the system has them")
    func writability() async throws {
        let group = try makeGroup()
        let server = try await bootstrap(group) { Echo() }.bind(host: "127.0.0.1", port: 0).get()
        let address = try #require(server.localAddress)
        let client = try await RunLoopDatagramBootstrap(group: group)
            .channelOption(ChannelOptions.writeBufferWaterMark, value: .init(low: 10, high: 100))
            .bind(host: "127.0.0.1", port: 0).get()
        let seen = try await client.eventLoop.submit {
            var seen: [Bool] = []
            for _ in 0..<3 {
                client.pipeline.write(
                    Envelope(remoteAddress: address, data: ByteBuffer(repeating: 1, count: 50)), promise: nil)
                seen.append(client.isWritable)
            }
            client.flush()
            return seen + [client.isWritable]
        }.get()
        #expect(seen == [true, true, false, true])
        try await group.shutdownGracefully()
    }

    @Test("a Unix socket receives datagrams, also of a sender without a name")
    func unix() async throws {
        let group = try makeGroup()
        let directory = TemporaryDirectory()
        let texts = Log<String>()
        let server = try await bootstrap(group) { Logger(texts) }
            .bind(unixDomainSocketPath: directory.path + "/socket").get()
        let client = try await RunLoopDatagramBootstrap(group: group)
            .connect(unixDomainSocketPath: directory.path + "/socket").get()
        try await client.writeAndFlush(ByteBuffer(string: "hello"))
        try await comesTrue { texts.entries == ["hello"] }
        try await server.close()
        #expect(access(directory.path + "/socket", F_OK) != 0)
        try await group.shutdownGracefully()
    }

    @Test("members of a group receive its datagrams until they leave")
    func multicast() async throws {
        let group = try makeGroup()
        let log = Log<String>()
        let member = try await bootstrap(group) { Logger(log) }.bind(host: "0.0.0.0", port: 0).get()
        let address = try SocketAddress(ipAddress: "239.7.7.7", port: try #require(member.localAddress?.port))
        let loopback = try System.enumerateDevices().first { $0.name == "lo" }
        let multicast = try #require(member as? any MulticastChannel)
        try await multicast.joinGroup(address, device: loopback).get()
        let sender = try await bootstrap(group) { Logger(Log()) }.bind(host: "127.0.0.1", port: 0).get()
        try await sender.writeAndFlush(Envelope(remoteAddress: address, data: ByteBuffer(string: "all")))
        try await comesTrue { log.entries == ["all"] }
        try await multicast.leaveGroup(address, device: loopback).get()
        await #expect(throws: IOError.self) { try await multicast.leaveGroup(address, device: loopback).get() }
        try await group.shutdownGracefully()
    }

    @Test("hosts of a simulation lose datagrams, the same for the same seed")
    func simulated() {
        func answers(seed: UInt64) -> [String] {
            let log = Log<String>()
            withSimulation(seed: seed) { simulation in
                let network = SimulatedNetwork(simulation)
                (network.link.latency, network.link.lossRate) = (.milliseconds(20), 0.3)
                network.addHost("server", addresses: ["10.9.9.9"]) { loop in
                    _ = bootstrap(loop.nio) { Echo() }.bind(host: "0.0.0.0", port: 53)
                }
                network.addHost("client") { loop in
                    let server = try SocketAddress(ipAddress: "10.9.9.9", port: 53)
                    bootstrap(loop.nio) { Logger(log) }.connect(to: server).whenSuccess { channel in
                        channel.eventLoop.scheduleRepeatedTask(initialDelay: .zero, delay: .seconds(1)) { _ in
                            let now = channel.eventLoop.now.uptimeNanoseconds / 1_000_000_000
                            channel.writeAndFlush(ByteBuffer(string: "\(now)"), promise: nil)
                        }
                    }
                }
                simulation.advance(by: .seconds(100))
            }
            return log.entries
        }
        let log = answers(seed: 3)
        #expect((20...80).contains(log.count), "\(log)")
        #expect(answers(seed: 3) == log)
        #expect(answers(seed: 4) != log)
    }
}
#endif
