import Dispatch
import NIOCore
import RunLoopKit
import RunLoopUnix

/// An event loop of SwiftNIO on a run loop: as much of one as its handlers with time-outs need.
final class LoopEventLoop: EventLoop, @unchecked Sendable {
    // Unchecked: the loop is used on its own thread.
    private let loop: RunLoopKit.RunLoop
    private let remote: RunLoopKit.RunLoop.Remote

    init(_ loop: RunLoopKit.RunLoop) {
        (self.loop, remote) = (loop, loop.remote)
    }

    var inEventLoop: Bool { remote.isCurrent }

    func execute(_ task: @escaping @Sendable () -> Void) {
        remote.perform { _ in task() }
    }

    func scheduleTask<Value>(deadline: NIODeadline, _ task: @escaping @Sendable () throws -> Value) -> Scheduled<Value>
    {
        scheduleTask(in: deadline - .now(), task)
    }

    func scheduleTask<Value>(in delay: TimeAmount, _ task: @escaping @Sendable () throws -> Value) -> Scheduled<Value> {
        preconditionInEventLoop()
        let promise = makePromise(of: Value.self)
        let timer = Timer(timeInterval: .nanoseconds(delay.nanoseconds), repeats: false) { _ in
            promise.assumeIsolated().completeWith(Result { try task() })
        }
        loop.add(timer, forMode: .common)
        return Scheduled(promise: promise) { [remote, timer = Box(timer)] in
            remote.perform { _ in timer.value.invalidate() }
        }
    }

    func shutdownGracefully(queue: DispatchQueue, _ callback: @escaping @Sendable ((any Error)?) -> Void) {
        callback(nil)
    }

    /// Carries a value that belongs to the loop's thread through closures that may be called on any.
    private struct Box<Value>: @unchecked Sendable {
        let value: Value

        init(_ value: Value) {
            self.value = value
        }
    }
}

/// A channel of SwiftNIO over a connection of RunLoopKit, accepted by a listener.
final class LoopChannel: Channel, ChannelCore, @unchecked Sendable {
    // Unchecked: it is used on its loop's thread.
    let allocator = ByteBufferAllocator()
    let eventLoop: any EventLoop
    private var connection: Connection?
    private var waiting: [(bytes: ByteBuffer, promise: EventLoopPromise<Void>?)] = []
    private let closing: EventLoopPromise<Void>
    private var lazyPipeline: ChannelPipeline!

    init(accepting descriptor: Int32, on loop: RunLoopKit.RunLoop) {
        eventLoop = LoopEventLoop(loop)
        closing = eventLoop.makePromise()
        lazyPipeline = ChannelPipeline(channel: self)
        connection = Connection(adopting: descriptor, on: loop) { [self] _, bytes in
            pipeline.fireChannelRead(bytes.withUnsafeBytes { ByteBuffer(bytes: $0) })
            pipeline.fireChannelReadComplete()
            return bytes.count
        }
        connection!.closeHandler = { [self] _, _ in
            connection = nil
            pipeline.fireChannelInactive()
            closing.succeed()
        }
    }

    func start() throws {
        pipeline.fireChannelRegistered()
        pipeline.fireChannelActive()
        try connection?.start()
    }

    var pipeline: ChannelPipeline { lazyPipeline }
    var closeFuture: EventLoopFuture<Void> { closing.futureResult }
    var localAddress: SocketAddress? { nil }
    var remoteAddress: SocketAddress? { nil }
    var parent: (any Channel)? { nil }
    var isWritable: Bool { true }
    var isActive: Bool { connection != nil }
    var _channelCore: any ChannelCore { self }

    func setOption<Option: ChannelOption>(_ option: Option, value: Option.Value) -> EventLoopFuture<Void> {
        eventLoop.makeFailedFuture(ChannelError.operationUnsupported)
    }

    func getOption<Option: ChannelOption>(_ option: Option) -> EventLoopFuture<Option.Value> {
        eventLoop.makeFailedFuture(ChannelError.operationUnsupported)
    }

    // MARK: Called by the pipeline

    func localAddress0() throws -> SocketAddress { throw ChannelError.operationUnsupported }
    func remoteAddress0() throws -> SocketAddress { throw ChannelError.operationUnsupported }
    func register0(promise: EventLoopPromise<Void>?) { promise?.succeed() }
    func registerAlreadyConfigured0(promise: EventLoopPromise<Void>?) { promise?.succeed() }
    func bind0(to: SocketAddress, promise: EventLoopPromise<Void>?) { promise?.fail(ChannelError.operationUnsupported) }
    func connect0(to: SocketAddress, promise: EventLoopPromise<Void>?) {
        promise?.fail(ChannelError.operationUnsupported)
    }

    func write0(_ data: NIOAny, promise: EventLoopPromise<Void>?) {
        waiting.append((unwrapData(data), promise))
    }

    func flush0() {
        let writes = waiting
        waiting = []
        for (bytes, promise) in writes {
            connection?.write(Array(bytes.readableBytesView))
            promise?.succeed()
        }
    }

    func read0() {}

    func close0(error: any Error, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        connection?.finish()
        promise?.succeed()
    }

    func triggerUserOutboundEvent0(_ event: Any, promise: EventLoopPromise<Void>?) { promise?.succeed() }
    func channelRead0(_ data: NIOAny) {}
    func errorCaught0(error: any Error) {}
}
