import Glibc
// SwiftNIO: one event loop on its thread, channels for descriptors, and the embedded event loop for virtual time.
import Harness
import NIOCore
import NIOEmbedded
import NIOPosix

private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
nonisolated(unsafe) private var loop: any EventLoop = group.next()
nonisolated(unsafe) private var stopped = sem_t()
nonisolated(unsafe) private var scheduled: [Scheduled<Void>?] = []

/// Hands the bytes that a channel has read to the harness, or sends them back.
private final class Reader: ChannelInboundHandler, Sendable {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    let number: Int
    let echoes = harness_echoes()
    init(number: Int) { self.number = number }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if echoes {
            context.writeAndFlush(data, promise: nil)
        } else {
            harness_received(number, unwrapInboundIn(data).readableBytes)
        }
    }
}

/// A `Scheduled` is a value without an identity; the handle is its number plus one.
private func schedule(after delay: UInt64, _ number: Int) -> UnsafeMutableRawPointer {
    let task = loop.scheduleTask(in: .nanoseconds(Int64(delay))) { harness_fired(number) }
    if number == scheduled.count { scheduled.append(task) } else { scheduled[number] = task }
    return UnsafeMutableRawPointer(bitPattern: number + 1)!
}

var peer = Peer()
peer.start = { _, _ in sem_init(&stopped, 0, 0) }
peer.on_loop = { task, argument in
    nonisolated(unsafe) let argument = argument
    do { try loop.submit { task!(argument) }.wait() } catch { fatalError("\(error)") }
}
peer.run = { sem_wait(&stopped) }
peer.stop = { sem_post(&stopped) }
peer.add = { schedule(after: $0, $1) }
peer.cancel = {
    let number = Int(bitPattern: $0) - 1
    scheduled[number]!.cancel()
    scheduled[number] = nil
}
// A scheduled task cannot be moved.
peer.rearm = { _, delay, number in
    scheduled[number]!.cancel()
    _ = schedule(after: delay, number)
}
peer.add_repeating = { period, number in
    let period = TimeAmount.nanoseconds(Int64(period))
    let task = loop.scheduleRepeatedTask(initialDelay: period, delay: period) { _ in harness_fired(number) }
    return Unmanaged.passRetained(task).toOpaque()
}
peer.post = { task, argument in
    nonisolated(unsafe) let argument = argument
    loop.execute { task!(argument) }
}
peer.watch = { descriptor, number in
    do {
        _ = try NIOPipeBootstrap(group: group)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Reader(number: number))
                }
            }
            .takingOwnershipOfDescriptor(inputOutput: descriptor).wait()
    } catch { fatalError("\(error)") }
}
peer.virtual_run = { duration, arm in
    let embedded = EmbeddedEventLoop()
    loop = embedded
    arm!(nil)
    embedded.advanceTime(by: .nanoseconds(Int64(duration)))
}

// Tasks.
peer.tasks = {
    taskWorkloads(on: loop, withTaskExecutor: CommandLine.arguments[1] == "task executor").start($0, $1, $2)
}

exit(harness_main(CommandLine.argc, CommandLine.unsafeArgv, &peer))
