#if Adapters
import Glibc
import NIOCore
import RunLoopKit
import RunLoopNIO
import RunLoopUnix
import TestSupport
import Testing

/// RunLoopUnix has a type of this name as well.
private typealias ByteBuffer = NIOCore.ByteBuffer

@Suite("Channels over pipes", .timeLimit(.minutes(15)))
struct PipeChannelTests {
    private func makeGroup() throws -> RunLoopEventLoopGroup { RunLoopEventLoopGroup(try LoopGroup(count: 1)) }

    private func collect(_ log: Log<String>) -> @Sendable (any Channel) -> EventLoopFuture<Void> {
        { channel in
            channel.eventLoop.makeCompletedFuture {
                try channel.pipeline.syncOperations.addHandler(Logger(log))
            }
        }
    }

    @Test("bytes go from one end to the other, and the end of the writer is the end of the reader")
    func pipe() async throws {
        let group = try makeGroup()
        let pair = DescriptorPair(.pipe)
        let log = Log<String>()
        let reader = try await RunLoopPipeBootstrap(group: group).channelInitializer(collect(log))
            .takingOwnershipOfDescriptor(input: dup(pair.reader)).get()
        let writer = try await RunLoopPipeBootstrap(group: group)
            .takingOwnershipOfDescriptor(output: dup(pair.writer)).get()
        pair.closeWriter()
        let text = String(repeating: "a pipe holds 64 KiB; ", count: 20_000)
        try await writer.writeAndFlush(ByteBuffer(string: text))
        await #expect(throws: ChannelError.outputClosed) { try await reader.writeAndFlush(ByteBuffer(string: "x")) }
        try await writer.close(mode: .output)
        try await reader.closeFuture.get()
        #expect(log.entries.joined() == text + "inactive")
        try await group.shutdownGracefully()
    }

    @Test("a child that echoes is a channel over two pipes")
    func two() async throws {
        let group = try makeGroup()
        let (there, back) = (DescriptorPair(.pipe), DescriptorPair(.pipe))
        let log = Log<String>()
        let echo = try await RunLoopPipeBootstrap(group: group)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Echo()) }
            }
            .takingOwnershipOfDescriptors(input: dup(there.reader), output: dup(back.writer)).get()
        let client = try await RunLoopPipeBootstrap(group: group)
            .channelOption(ChannelOptions.allowRemoteHalfClosure, value: true)
            .channelInitializer(collect(log))
            .takingOwnershipOfDescriptors(input: dup(back.reader), output: dup(there.writer)).get()
        there.closeWriter()
        back.closeWriter()
        try await client.writeAndFlush(ByteBuffer(string: "hello"))
        try await client.close(mode: .output)
        try await echo.closeFuture.get()
        try await client.closeFuture.get()
        #expect(log.entries == ["hello", "inactive"])
        try await group.shutdownGracefully()
    }

    @Test("waiting input is read before a task that is due: a late loop times no peer out")
    func lateLoop() async throws {
        let group = try makeGroup()
        let (pair, log) = (DescriptorPair(.pipe), Log<String>())
        let writer = pair.writer
        let channel = try await RunLoopPipeBootstrap(group: group).channelInitializer(collect(log))
            .takingOwnershipOfDescriptor(input: dup(pair.reader)).get()
        try await channel.eventLoop.submit {
            channel.eventLoop.scheduleTask(in: .milliseconds(1)) { log("task") }
            _ = write(writer, "input", 5)
            usleep(20_000)
        }.get()
        try await comesTrue { log.entries.count == 2 }
        #expect(log.entries == ["input", "task"])
        try await channel.close()
        try await group.shutdownGracefully()
    }

    @Test("a reader that has gone fails the next write and closes the channel")
    func broken() async throws {
        let group = try makeGroup()
        let pair = DescriptorPair(.pipe)
        let writer = try await RunLoopPipeBootstrap(group: group)
            .takingOwnershipOfDescriptor(output: dup(pair.writer)).get()
        pair.closeReader()
        do {
            try await writer.writeAndFlush(ByteBuffer(string: "x"))
            Issue.record("nobody reads it")
        } catch let error as IOError {
            #expect(error.errnoCode == EPIPE)
        }
        try await writer.closeFuture.get()
        try await group.shutdownGracefully()
    }

    @Test("a file cannot be waited for, and is closed")
    func file() async throws {
        let group = try makeGroup()
        let file = TemporaryFile()
        let descriptor = open(file.path, O_RDONLY)
        await #expect(throws: DescriptorError.self) {
            _ = try await RunLoopPipeBootstrap(group: group).takingOwnershipOfDescriptor(input: descriptor).get()
        }
        try await group.shutdownGracefully()
        // Another test may have the number by now.
        var (opened, own) = (stat(), stat())
        #expect(fstat(descriptor, &opened) < 0 || (stat(file.path, &own) == 0 && opened.st_ino != own.st_ino))
    }
}

/// Logs the input.
private final class Logger: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let log: Log<String>

    init(_ log: Log<String>) { self.log = log }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { log(String(buffer: unwrapInboundIn(data))) }
    func channelInactive(context: ChannelHandlerContext) { log("inactive") }
}

private final class Echo: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { context.writeAndFlush(data, promise: nil) }
}
#endif
