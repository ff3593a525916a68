#if Adapters
import Glibc
import NIOCore
import RunLoopKit
import RunLoopNIO
import RunLoopSimulation
import RunLoopUnix
import TestSupport
import Testing

/// RunLoopUnix has a type of this name as well.
private typealias ByteBuffer = NIOCore.ByteBuffer

private final class Echo: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { context.writeAndFlush(data, promise: nil) }
}

/// Logs each piece of input.
private final class Collector: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let log: Log<String>

    init(_ log: Log<String>) {
        self.log = log
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { log(String(buffer: unwrapInboundIn(data))) }
}

@Suite("Channels on run loops", .timeLimit(.minutes(15)))
struct ChannelTests {
    private func echo(on group: any EventLoopGroup, children: Log<String>? = nil) -> RunLoopServerBootstrap {
        RunLoopServerBootstrap(group: group).childChannelInitializer { channel in
            channel.eventLoop.makeCompletedFuture {
                children?("\(ObjectIdentifier(channel.eventLoop))")
                try channel.pipeline.syncOperations.addHandler(Echo())
            }
        }
    }

    /// Sends a text and returns the answer, with Swift's concurrency.
    private func ask(_ text: String, _ address: SocketAddress, on group: any EventLoopGroup) async throws -> String {
        let channel = try await RunLoopClientBootstrap(group: group).connect(to: address)
            .flatMapThrowing { try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: $0) }.get()
        return try await channel.executeThenClose { inbound, outbound in
            try await outbound.write(ByteBuffer(string: text))
            var answer = ""
            for try await part in inbound {
                answer += String(buffer: part)
                if answer.utf8.count >= text.utf8.count { break }
            }
            return answer
        }
    }

    @Test("a group serves its connections on all of its loops, and SwiftNIO's async channels work")
    func group() async throws {
        let (group, clients) = (try makeGroup(loops: 2), try makeGroup(loops: 1))
        let children = Log<String>()
        let server = try await echo(on: group, children: children).bind(host: "127.0.0.1", port: 0).get()
        let address = try #require(server.localAddress)
        for number in 0..<4 {
            let text = String(repeating: "\(number)", count: 100_000)
            #expect(try await ask(text, address, on: clients) == text)
        }
        #expect(children.entries.count == 4 && Set(children.entries).count == 2)
        try await server.close().get()
        try await group.shutdownGracefully()
        try await clients.shutdownGracefully()
    }

    @Test("a listener whose input closes serves the peers that wait in its queue, and no further one")
    func finish() async throws {
        let (group, clients) = (try makeGroup(loops: 2), try makeGroup(loops: 1))
        let server = try await echo(on: group).serverChannelOption(.autoRead, value: false)
            .bind(host: "127.0.0.1", port: 0).get()
        let address = try #require(server.localAddress)
        let answers = Log<String>()
        var waiting: [any Channel] = []
        for _ in 0..<10 {
            let bootstrap = RunLoopClientBootstrap(group: clients).channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Collector(answers))
                }
            }
            let channel = try await bootstrap.connect(to: address).get()
            try await channel.writeAndFlush(ByteBuffer(string: "hello"))
            waiting.append(channel)
        }
        try await server.close(mode: .input)
        try await comesTrue { answers.entries.count == waiting.count }
        #expect(!server.isActive && answers.entries.allSatisfy { $0 == "hello" })
        await #expect(throws: (any Error).self) {
            try await RunLoopClientBootstrap(group: clients).connect(to: address).get()
        }
        try await group.shutdownGracefully()
        try await clients.shutdownGracefully()
    }

    @Test("a task takes the connections of a listener, and gets the initializer's results")
    func forTasks() async throws {
        let group = try makeGroup(loops: 2)
        let server = try await RunLoopServerBootstrap(group: group).bind(host: "127.0.0.1", port: 0) { channel in
            channel.eventLoop.makeCompletedFuture {
                try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
            }
        }
        let address = try #require(server.channel.localAddress)
        try await server.executeThenClose { connections in
            async let served: Void = {
                var left = 10
                for try await connection in connections {
                    try await connection.executeThenClose { inbound, outbound in
                        for try await part in inbound { try await outbound.write(part) }
                    }
                    left -= 1
                    if left == 0 { return }
                }
            }()
            for number in 0..<10 {
                let text = String(repeating: "\(number)", count: 100_000)
                let client = try await RunLoopClientBootstrap(group: group).connect(to: address) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                    }
                }
                let answer = try await client.executeThenClose { inbound, outbound in
                    try await outbound.write(ByteBuffer(string: text))
                    var answer = ""
                    for try await part in inbound {
                        answer += String(buffer: part)
                        if answer.utf8.count == text.utf8.count { break }
                    }
                    return answer
                }
                #expect(answer == text)
            }
            try await served
        }
        try await group.shutdownGracefully()
    }

    @Test("a listener whose connections are not taken accepts few, and an initializer that fails closes one")
    func backPressure() async throws {
        let group = try makeGroup(loops: 1)
        let made = Log<String>()
        struct Refusal: Error {}
        let server = try await RunLoopServerBootstrap(group: group).bind(
            host: "127.0.0.1", port: 0, serverBackPressureStrategy: .init(lowWatermark: 1, highWatermark: 2)
        ) { channel -> EventLoopFuture<Int> in
            made("one")
            if made.entries.count == 1 { return channel.eventLoop.makeFailedFuture(Refusal()) }
            return channel.eventLoop.makeSucceededFuture(made.entries.count)
        }
        let address = try #require(server.channel.localAddress)
        let refused = try await RunLoopClientBootstrap(group: group).connect(to: address).get()
        try await refused.closeFuture.get()
        for _ in 0..<50 { _ = try await RunLoopClientBootstrap(group: group).connect(to: address).get() }
        try await comesTrue { made.entries.count >= 3 }
        #expect(made.entries.count < 20)
        try await server.executeThenClose { connections in
            var next = 2
            for try await number in connections {
                #expect(number == next)
                next += 1
                if next == 52 { break }
            }
        }
        #expect(made.entries.count == 51)
        try await group.shutdownGracefully()
    }

    /// Makes the group outside of a task, because this blocks.
    private func makeGroup(loops: Int) throws -> RunLoopEventLoopGroup {
        RunLoopEventLoopGroup(try LoopGroup(count: loops))
    }

    @Test("a Unix socket is served, and its path is removed when the listener closes")
    func path() async throws {
        let group = try makeGroup(loops: 1)
        let directory = TemporaryDirectory()
        let path = directory.path + "/socket"
        let server = try await echo(on: group).bind(unixDomainSocketPath: path).get()
        let answer = try await ask("hello", SocketAddress(unixDomainSocketPath: path), on: group)
        #expect(answer == "hello")
        try await server.close().get()
        #expect(access(path, F_OK) != 0)
        try await group.shutdownGracefully()
    }

    @Test("a port that is in use, and a port without a listener, are errors of the system")
    func errors() async throws {
        let group = try makeGroup(loops: 1)
        let server = try await echo(on: group).bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(server.localAddress?.port)
        #expect(await errno { try await echo(on: group).bind(host: "127.0.0.1", port: port).get() } == EADDRINUSE)
        try await server.close().get()
        let refusing = RefusingPort()
        let refused = Int(refusing.number)
        #expect(
            await errno {
                try await RunLoopClientBootstrap(group: group).connect(host: "127.0.0.1", port: refused).get()
            } == ECONNREFUSED)
        try await group.shutdownGracefully()
    }

    @Test("a descriptor that cannot be waited for is no channel")
    func notWaitable() async throws {
        let group = try makeGroup(loops: 1)
        await #expect(throws: DescriptorError.self) {
            _ = try await RunLoopClientBootstrap(group: group).withConnectedSocket(open("/dev/null", O_RDWR)).get()
        }
        try await group.shutdownGracefully()
    }

    @Test("a descriptor that the system refuses later closes its channel, and no other")
    func refusedLater() async throws {
        let group = try makeGroup(loops: 1)
        let (one, other) = (DescriptorPair(.socketPair), DescriptorPair(.socketPair))
        let descriptor = dup(one.reader)
        let channel = try await RunLoopClientBootstrap(group: group).withConnectedSocket(descriptor).get()
        let neighbour = try await RunLoopClientBootstrap(group: group).withConnectedSocket(dup(other.reader)).get()
        try await channel.setOption(ChannelOptions.autoRead, value: false).get()
        let null = open("/dev/null", O_RDWR)
        dup2(null, descriptor)
        close(null)
        channel.setOption(ChannelOptions.autoRead, value: true).whenComplete { _ in }
        try await channel.closeFuture.get()
        #expect(neighbour.isActive)
        try await neighbour.writeAndFlush(NIOCore.ByteBuffer(string: "x")).get()
        try await group.shutdownGracefully()
    }

    private func errno(_ body: () async throws -> any Channel) async -> Int32? {
        do {
            _ = try await body()
            return nil
        } catch {
            return (error as? IOError)?.errnoCode
        }
    }

    @Test("a server that does not read leaves connections with the system")
    func acceptsWhenRead() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let server = echo(on: loop.nio, children: log).serverChannelOption(ChannelOptions.autoRead, value: false)
                .bind(host: "127.0.0.1", port: 0)
            let address = Log<SocketAddress>()
            server.whenSuccess { address.append($0.localAddress!) }
            simulation.settle { !address.entries.isEmpty }
            for _ in 0..<2 {
                RunLoopClientBootstrap(group: loop.nio).connect(to: address.entries[0]).whenSuccess { _ in
                    log("connected")
                }
            }
            simulation.settle { log.entries.count == 2 }
            #expect(log.entries == ["connected", "connected"])
            server.whenSuccess { $0.read() }
            simulation.settle { log.entries.count == 4 }
            #expect(log.entries.count == 4)
        }
    }

    @Test("a handler that runs the loop gets more input when it has returned, and the loop sleeps meanwhile")
    func nested() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let pair = DescriptorPair(.socketPair)
            let writer = pair.writer
            RunLoopClientBootstrap(group: loop.nio)
                .channelInitializer { channel in
                    channel.pipeline.addHandler(
                        Listening {
                            log("read")
                            guard log.entries == ["connected", "read"] else { return }
                            let loop = RunLoop.current
                            let passes = loop.statistics.passes
                            _ = send(writer, "x", 1, 0)
                            loop.run(in: .default, until: loop.now + .seconds(1))
                            log("returns after few passes: \(loop.statistics.passes - passes < 20)")
                        })
                }
                .withConnectedSocket(dup(pair.reader))
                .whenSuccess { _ in log("connected") }
            simulation.settle { !log.entries.isEmpty }
            pair.write()
            simulation.settle { log.entries.count == 4 }
            #expect(log.entries == ["connected", "read", "returns after few passes: true", "read"])
        }
    }

    @Test(
        "input that a handler keeps is not overwritten by any channel's later input", arguments: 0..<20 as Range<UInt64>
    )
    func keptInput(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        withSimulation { simulation in
            let loop = simulation.loop
            let (pairs, keepers) = ((0..<6).map { _ in DescriptorPair(.socketPair) }, (0..<6).map { _ in Keeper() })
            for (pair, keeper) in zip(pairs, keepers) {
                _ = RunLoopClientBootstrap(group: loop.nio)
                    .channelInitializer { $0.pipeline.addHandler(keeper) }
                    .withConnectedSocket(dup(pair.reader))
            }
            var sent = [[UInt8]](repeating: [], count: pairs.count)
            for round in 0..<60 {
                let number = Int.random(in: 0..<pairs.count, using: &random)
                let count = Int.random(in: 1...(Bool.random(using: &random) ? 100 : 20_000), using: &random)
                let bytes = [UInt8](repeating: UInt8(round), count: count)
                #expect(send(pairs[number].writer, bytes, count, 0) == count)
                sent[number] += bytes
                if Bool.random(using: &random) { keepers[number].forgetFirst() }
                simulation.settle { keepers[number].received == sent[number].count }
            }
            for (keeper, sent) in zip(keepers, sent) { #expect(keeper.isSuffix(of: sent), "seed \(seed)") }
        }
    }

    @Test("flushed output leaves with the first flush, and the rest together, also if the handler runs the loop")
    func flushesTogether() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let pair = DescriptorPair(.socketPair)
            let peer = pair.writer
            @Sendable func receive(_ moment: String) {
                var room = [UInt8](repeating: 0, count: 100)
                log("\(moment): \(recv(peer, &room, room.count, Int32(MSG_DONTWAIT)))")
            }
            RunLoopClientBootstrap(group: loop.nio)
                .channelInitializer { channel in
                    channel.pipeline.addHandler(
                        Listening {
                            for _ in 1...3 { channel.writeAndFlush(ByteBuffer(string: "reply"), promise: nil) }
                            receive("in the handler")
                            let isFirst = log.entries.count == 2
                            guard isFirst else { return }
                            let loop = RunLoop.current
                            loop.run(in: .default, until: loop.now + .seconds(1))
                            receive("the handler has run the loop")
                        })
                }
                .withConnectedSocket(dup(pair.reader))
                .whenSuccess { _ in log("connected") }
            simulation.settle { !log.entries.isEmpty }
            pair.write()
            simulation.settle { log.entries.count == 3 }
            pair.write()
            simulation.settle { log.entries.count == 4 }
            receive("the handler has returned")
            #expect(
                log.entries == [
                    "connected", "in the handler: 5", "the handler has run the loop: 10", "in the handler: 5",
                    "the handler has returned: 10",
                ])
        }
    }

    /// Makes channels that answer each input, without a promise.
    ///
    /// - Parameter answered: called in each handler, with the number of peers that had an answer before, and a function
    ///   that counts the peers that have one.
    private func ask(
        _ pairs: [DescriptorPair], on loop: RunLoop, settle: (() -> Bool) -> Void,
        _ answered: @escaping @Sendable (_ before: Int, _ count: () -> Int) -> Void
    ) {
        let peers = pairs.map(\.writer)
        @Sendable func answers() -> Int {
            peers.count {
                var byte: UInt8 = 0
                return recv($0, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) == 1
            }
        }
        let log = Log<String>()
        for pair in pairs {
            RunLoopClientBootstrap(group: loop.nio)
                .channelInitializer { channel in
                    channel.pipeline.addHandler(
                        Listening {
                            let before = answers()
                            channel.writeAndFlush(ByteBuffer(string: "answer"), promise: nil)
                            answered(before, answers)
                        })
                }
                .withConnectedSocket(dup(pair.reader))
                .whenSuccess { _ in log("connected") }
        }
        settle { log.entries.count == pairs.count }
        for pair in pairs { pair.write() }
        settle { answers() == pairs.count }
    }

    @Test("of channels that are ready together, the first answers at once, then four at a time answer together")
    func groups() {
        withSimulation { simulation in
            let counts = Log<Int>()
            ask(
                (0..<15).map { _ in DescriptorPair(.socketPair) }, on: simulation.loop,
                settle: { simulation.settle(until: $0) }
            ) { before, count in
                counts.append(before)
                counts.append(count())
            }
            func times(_ count: Int, _ number: Int) -> [Int] { Array(repeating: number, count: count) }
            #expect(counts.entries == [0] + times(9, 1) + times(8, 5) + times(8, 9) + times(4, 13))
        }
    }

    @Test("where handlers take long, each channel answers at once")
    func slowHandlers() {
        let (loop, counts) = (RunLoop.current, Log<Int>())
        func settle(_ isSettled: () -> Bool) {
            while !isSettled() { loop.run(in: .default, until: loop.now + .milliseconds(1)) }
        }
        ask((0..<8).map { _ in DescriptorPair(.socketPair) }, on: loop, settle: settle) { _, count in
            counts.append(count())
            let end = ContinuousClock.now + .milliseconds(1)
            while ContinuousClock.now < end {}
        }
        #expect(counts.entries == Array(1...8))
    }

    @Test("output of channels that are ready together leaves before a handler waits in a mode of its own")
    func groupsInNestedRuns() {
        withSimulation { simulation in
            let counts = Log<Int>()
            ask(
                (0..<8).map { _ in DescriptorPair(.socketPair) }, on: simulation.loop,
                settle: { simulation.settle(until: $0) }
            ) { _, count in
                if counts.entries.count == 3 {
                    let loop = RunLoop.current
                    loop.run(in: "private", until: loop.now + .seconds(1))
                }
                counts.append(count())
            }
            // The last four are found ready again after that run.
            #expect(counts.entries == [1, 1, 1, 4, 5, 5, 5, 5])
        }
    }

    @Test("a flush before the end of the output is not put off: the output ends with it")
    func flushBeforeTheEnd() {
        withSimulation { simulation in
            let log = Log<String>()
            let pair = DescriptorPair(.socketPair)
            RunLoopClientBootstrap(group: simulation.loop.nio)
                .channelInitializer { channel in
                    channel.pipeline.addHandler(
                        Listening {
                            channel.writeAndFlush(ByteBuffer(string: "one"), promise: nil)
                            channel.write(ByteBuffer(string: "two"), promise: nil)
                            channel.close(mode: .output).whenComplete { _ in log("ended") }
                            channel.flush()
                            channel.write(ByteBuffer(string: "late")).whenFailure { log("\($0)") }
                        })
                }
                .withConnectedSocket(dup(pair.reader))
                .whenSuccess { _ in log("connected") }
            simulation.settle { !log.entries.isEmpty }
            pair.write()
            simulation.settle { log.entries.count == 3 }
            #expect(log.entries == ["connected", "ended", "\(ChannelError.outputClosed)"])
        }
    }

    @Test("a channel of another mode rests in a nested run")
    func modes() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let pair = DescriptorPair(.socketPair)
            RunLoopClientBootstrap(group: loop.nio(inModes: .default))
                .channelInitializer { channel in
                    channel.pipeline.addHandler(Listening { log("read") })
                }
                .withConnectedSocket(dup(pair.reader))
                .whenSuccess { _ in log("connected") }
            simulation.settle { !log.entries.isEmpty }
            pair.write()
            loop.run(in: "tracking", until: loop.now + .seconds(1))
            #expect(log.entries == ["connected"])
            simulation.settle { log.entries.count == 2 }
            #expect(log.entries == ["connected", "read"])
        }
    }
}

/// A handler that keeps its input.
// Unchecked: used only on the loop's thread.
private final class Keeper: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = ByteBuffer

    private var kept: [ByteBuffer] = []
    private(set) var received = 0

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        kept.append(unwrapInboundIn(data))
        received += kept.last!.readableBytes
    }

    func forgetFirst() {
        if !kept.isEmpty { kept.removeFirst() }
    }

    /// Returns `true` if the kept input is the end of `bytes`.
    func isSuffix(of bytes: [UInt8]) -> Bool {
        let all = kept.flatMap { Array($0.readableBytesView) }
        return all == Array(bytes.suffix(all.count))
    }
}

private final class Listening: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = ByteBuffer

    private let body: () -> Void

    init(_ body: @escaping () -> Void) {
        self.body = body
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { body() }
}
#endif
