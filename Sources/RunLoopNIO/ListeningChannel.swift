#if Adapters
internal import Glibc
internal import NIOCore
internal import RunLoopCore
internal import RunLoopKit
internal import RunLoopUnix
internal import Synchronization

/// The channel of a listener, whose input are the channels of its connections.
// Unchecked: all state without a lock is used on the loop's thread only.
final class ListeningChannel: Channel, ChannelCore, @unchecked Sendable {
    private enum State {
        case fresh, registered, active, closed
    }

    let loopOfChannel: RunLoopEventLoop
    private let children: any EventLoopGroup
    private let closePromise: EventLoopPromise<Void>
    private let shared = Locked<(local: SocketAddress?, allocator: ByteBufferAllocator)>((nil, ByteBufferAllocator()))
    private let activity = Atomic(false)
    private var storedPipeline: ChannelPipeline!

    private var state = State.fresh
    private var listener: Listener?
    private var options = Listener.Options()
    private var socketOptions: [SocketOption] = []
    private var readPending = false
    private var autoRead = true

    /// - Parameter children: the event loops of the connections, in turn.
    init(on eventLoop: RunLoopEventLoop, children: any EventLoopGroup) {
        (loopOfChannel, self.children) = (eventLoop, children)
        closePromise = eventLoop.makePromise()
        // One event of the pipeline after another, as for data: a handler that stops reading gets few more.
        options.budget = 4
        storedPipeline = ChannelPipeline(channel: self)
    }

    var eventLoop: any EventLoop { loopOfChannel }
    var pipeline: ChannelPipeline { storedPipeline }
    var parent: (any Channel)? { nil }
    var closeFuture: EventLoopFuture<Void> { closePromise.futureResult }
    var allocator: ByteBufferAllocator { shared.withLock { $0.allocator } }
    var localAddress: SocketAddress? { shared.withLock { $0.local } }
    var remoteAddress: SocketAddress? { nil }
    var isActive: Bool { activity.load(ordering: .relaxed) }
    var isWritable: Bool { false }
    var _channelCore: any ChannelCore { self }

    func localAddress0() throws -> SocketAddress {
        guard let address = localAddress else { throw ChannelError.ioOnClosedChannel }
        return address
    }

    func remoteAddress0() throws -> SocketAddress { throw ChannelError.operationUnsupported }

    private var isOpen: Bool { state != .closed }

    // MARK: Beginning

    func register0(promise: EventLoopPromise<Void>?) {
        guard isOpen else { return fail(promise, ChannelError.ioOnClosedChannel) }
        guard state == .fresh else { return fail(promise, ChannelError.inappropriateOperationForState) }
        state = .registered
        loopOfChannel.atEnd(of: self) { [self] in close0(error: EventLoopError.shutdown, mode: .all, promise: nil) }
        promise?.succeed(())
        pipeline.syncOperations.fireChannelRegistered()
    }

    func bind0(to address: SocketAddress, promise: EventLoopPromise<Void>?) {
        begin(promise) { loop in
            try Listener(
                address: try Endpoint(address), on: loop, modes: loopOfChannel.modes, options: options,
                handler: { [unowned self] _, descriptor, peer in accepted(descriptor, from: peer) })
        }
    }

    /// Accepts on a descriptor that listens already.
    func adopt(_ descriptor: Int32, promise: EventLoopPromise<Void>?) {
        begin(promise) { loop in
            try Listener(
                inherited: descriptor, on: loop, modes: loopOfChannel.modes, options: options,
                handler: { [unowned self] _, descriptor, peer in accepted(descriptor, from: peer) })
        }
    }

    private func begin(_ promise: EventLoopPromise<Void>?, _ listen: (RunLoop) throws -> Listener) {
        guard isOpen else { return fail(promise, ChannelError.ioOnClosedChannel) }
        guard state == .registered, let loop = loopOfChannel.loop else {
            return fail(promise, ChannelError.inappropriateOperationForState)
        }
        do {
            let listener = try listen(loop)
            self.listener = listener
            listener.takesConnections = false
            let system = WorldSystem.of(loop)
            for option in socketOptions { system.set(option, of: listener.fileDescriptor) }
            listener.errorHandler = { [unowned self] _, error in
                pipeline.syncOperations.fireErrorCaught(error.ioError)
            }
            listener.batchHandler = { [unowned self] in batchEnds() }
            listener.closedByLoop = { [unowned self] in loopOfChannel.end() }
            shared.withLock { $0.local = SocketAddress(listener.address) }
        } catch {
            return fail(promise, (error as? SystemError)?.ioError ?? error)
        }
        state = .active
        activity.store(true, ordering: .relaxed)
        promise?.succeed(())
        guard isOpen else { return }
        pipeline.syncOperations.fireChannelActive()
        readIfNeeded()
    }

    func connect0(to address: SocketAddress, promise: EventLoopPromise<Void>?) {
        fail(promise, ChannelError.operationUnsupported)
    }

    // MARK: Accepting

    private func accepted(_ descriptor: Int32, from peer: Endpoint) {
        readPending = false
        guard let child = children.next() as? RunLoopEventLoop, let loop = loopOfChannel.loop else {
            preconditionFailure("the event loops of a RunLoopServerBootstrap are those of run loops")
        }
        let stream = DescriptorStream(descriptor, on: loop)
        let channel = StreamChannel(stream, peer: peer, on: child, parent: self)
        pipeline.syncOperations.fireChannelRead(NIOAny(channel as any Channel))
    }

    private func batchEnds() {
        guard isOpen else { return }
        pipeline.syncOperations.fireChannelReadComplete()
        readIfNeeded()
        listener?.takesConnections = readPending
    }

    func read0() {
        guard isOpen else { return }
        readPending = true
        listener?.takesConnections = true
    }

    private func readIfNeeded() {
        if state == .active, !readPending, autoRead { pipeline.syncOperations.read() }
    }

    /// A connection that the handlers of the pipeline have let through.
    func channelRead0(_ data: NIOAny) {
        guard let channel = tryUnwrapData(data, as: (any Channel).self) as? StreamChannel else { return }
        channel.loopOfChannel.onLoop { channel.registerAlreadyConfigured0(promise: nil) }
    }

    func errorCaught0(error: any Error) {}

    // MARK: No output

    func write0(_ data: NIOAny, promise: EventLoopPromise<Void>?) { fail(promise, ChannelError.operationUnsupported) }

    func flush0() {}

    func triggerUserOutboundEvent0(_ event: Any, promise: EventLoopPromise<Void>?) {
        fail(promise, ChannelError.operationUnsupported)
    }

    // MARK: Closing

    func close0(error: any Error, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard isOpen else { return fail(promise, ChannelError.alreadyClosed) }
        guard mode == .all else { return fail(promise, ChannelError.operationUnsupported) }
        let former = state
        state = .closed
        activity.store(false, ordering: .relaxed)
        loopOfChannel.forget(self)
        let listener = listener.take()
        listener?.closedByLoop = nil
        listener?.close()
        promise?.succeed(())
        if former == .active { pipeline.syncOperations.fireChannelInactive() }
        if former != .fresh { pipeline.syncOperations.fireChannelUnregistered() }
        loopOfChannel._executeIsolatedUnsafeUnchecked { [self] in
            removeHandlers(pipeline: pipeline)
            closePromise.succeed(())
            shared.withLock { $0.local = nil }
        }
    }

    private func fail(_ promise: EventLoopPromise<Void>?, _ error: any Error) { promise?.fail(error) }
}

// MARK: Options

extension ListeningChannel: NIOSynchronousChannelOptions {
    var syncOptions: (any NIOSynchronousChannelOptions)? { self }

    func setOption<Option: ChannelOption>(_ option: Option, value: Option.Value) -> EventLoopFuture<Void> {
        eventLoop.submit { try self.setOption(option, value: value) }
    }

    func getOption<Option: ChannelOption>(_ option: Option) -> EventLoopFuture<Option.Value> {
        eventLoop.submit { try self.getOption(option) }
    }

    func setOption<Option: ChannelOption>(_ option: Option, value: Option.Value) throws {
        guard isOpen else { throw ChannelError.ioOnClosedChannel }
        switch (option, value) {
        case (_ as ChannelOptions.Types.AutoReadOption, let value as Bool):
            guard autoRead != value else { return }
            autoRead = value
            guard state == .active else { return }
            if value { return read0() }
            readPending = false
            listener?.takesConnections = false
        case (_ as ChannelOptions.Types.BacklogOption, let value as Int32): options.backlog = value
        case (_ as ChannelOptions.Types.MaxMessagesPerReadOption, let value as UInt):
            options.budget = Int(clamping: max(1, value))
        case (_ as ChannelOptions.Types.AllocatorOption, let value as ByteBufferAllocator):
            shared.withLock { $0.allocator = value }
        case (let option as ChannelOptions.Types.SocketOption, let value as SocketOptionValue):
            let isReusePort = option.optionLevel == .socket && option.optionName.rawValue == SO_REUSEPORT
            if isReusePort { options.reusesPort = value != 0 } else { socketOptions.append((option, value)) }
        default: throw ChannelError.operationUnsupported
        }
    }

    func getOption<Option: ChannelOption>(_ option: Option) throws -> Option.Value {
        guard isOpen else { throw ChannelError.ioOnClosedChannel }
        let value: Any? =
            switch option {
            case _ as ChannelOptions.Types.AutoReadOption: autoRead
            case _ as ChannelOptions.Types.BacklogOption: options.backlog
            case _ as ChannelOptions.Types.MaxMessagesPerReadOption: UInt(options.budget)
            case _ as ChannelOptions.Types.AllocatorOption: allocator
            case let option as ChannelOptions.Types.SocketOption:
                listener.flatMap { WorldSystem.of($0.loop).value(of: option, of: $0.fileDescriptor) }
            default: nil
            }
        guard let value = value as? Option.Value else { throw ChannelError.operationUnsupported }
        return value
    }
}
#endif
