#if Adapters
internal import Glibc
internal import NIOCore
@_spi(Ports) internal import RunLoopCore
internal import RunLoopKit
@_spi(Ports) internal import RunLoopUnix
internal import Synchronization

/// The base class of a run loop's channels, with their states, their thread-safe properties, and their options.
// Unchecked: all state without a lock is used on the loop's thread only.
class LoopChannel: Channel, ChannelCore, NIOSynchronousChannelOptions, @unchecked Sendable {
    enum State {
        case fresh, registered
        /// Active, but the handlers have not been notified.
        case activating
        case active, closed
    }

    /// The values that any thread may read.
    struct Shared {
        var local: SocketAddress?
        var remote: SocketAddress?
        var allocator = ByteBufferAllocator()
    }

    final let loopOfChannel: RunLoopEventLoop
    final let parent: (any Channel)?
    final let shared = Locked(Shared())
    private let closePromise: EventLoopPromise<Void>
    private let activity = Atomic(false)
    private var storedPipeline: ChannelPipeline!

    final private(set) var state = State.fresh
    final var readPending = false
    final private(set) var autoRead = true
    /// The socket options that were set before there was a socket.
    final var socketOptions: [SocketOption] = []

    init(on eventLoop: RunLoopEventLoop, parent: (any Channel)? = nil) {
        (loopOfChannel, self.parent) = (eventLoop, parent)
        closePromise = eventLoop.makePromise()
        storedPipeline = ChannelPipeline(channel: self)
    }

    // MARK: Answers, on any thread

    final var eventLoop: any EventLoop { loopOfChannel }
    final var pipeline: ChannelPipeline { storedPipeline }
    final var closeFuture: EventLoopFuture<Void> { closePromise.futureResult }

    /// Calls `body` with the pipeline's operations. Called on the loop's thread.
    // Unretained, because the channel keeps its pipeline: retaining it took three more reference-count updates per
    // message.
    @inline(__always)
    final func withHandlers(_ body: (ChannelPipeline.SynchronousOperations) -> Void) {
        Unmanaged.passUnretained(storedPipeline)._withUnsafeGuaranteedRef { body($0.syncOperations) }
    }

    final var allocator: ByteBufferAllocator { shared.withLock { $0.allocator } }
    final var localAddress: SocketAddress? { shared.withLock { $0.local } }
    final var remoteAddress: SocketAddress? { shared.withLock { $0.remote } }
    final var isActive: Bool { activity.load(ordering: .relaxed) }
    var isWritable: Bool { false }
    final var _channelCore: any ChannelCore { self }

    final func localAddress0() throws -> SocketAddress { try address(\.local) }

    final func remoteAddress0() throws -> SocketAddress { try address(\.remote) }

    private func address(_ which: KeyPath<Shared, SocketAddress?>) throws -> SocketAddress {
        guard isOpen else { throw ChannelError.ioOnClosedChannel }
        guard let address = shared.withLock({ $0[keyPath: which] }) else { throw ChannelError.operationUnsupported }
        return address
    }

    // MARK: States

    final var isOpen: Bool { state != .closed }
    final var isLive: Bool { state == .activating || state == .active }

    /// The system of the loop's world; `nil` once the loop has ended.
    final var system: (any SystemCalls)? { loopOfChannel.loop.map { WorldSystem.of($0) } }

    final func register0(promise: EventLoopPromise<Void>?) {
        guard isOpen else { return fail(promise, ChannelError.ioOnClosedChannel) }
        guard state == .fresh else { return fail(promise, ChannelError.inappropriateOperationForState) }
        guard loopOfChannel.loop != nil else {
            pipeline.syncOperations.fireErrorCaught(EventLoopError.shutdown)
            close0(error: EventLoopError.shutdown, mode: .all, promise: nil)
            return fail(promise, EventLoopError.shutdown)
        }
        state = .registered
        loopOfChannel.atEnd(of: self) { [self] in close0(error: EventLoopError.shutdown, mode: .all, promise: nil) }
        promise?.succeed(())
        pipeline.syncOperations.fireChannelRegistered()
    }

    /// Applies a bootstrap's options and initializer, and then calls `body`; closes the channel if any of these fail.
    final func prepare(
        _ options: ChannelOptions.Storage, _ initializer: (@Sendable (any Channel) -> EventLoopFuture<Void>)?,
        then body: @escaping @Sendable () -> EventLoopFuture<Void>
    ) -> EventLoopFuture<any Channel> {
        options.applyAllChannelOptions(to: self)
            .flatMap { initializer?(self) ?? self.eventLoop.makeSucceededVoidFuture() }
            .flatMap(body)
            .map { self }
            .flatMapError { error in
                self.close(promise: nil)
                return self.eventLoop.makeFailedFuture(error)
            }
    }

    /// Makes the channel active without notifying the handlers.
    final func beginActivation(_ promise: EventLoopPromise<Void>?) {
        state = .activating
        activity.store(true, ordering: .relaxed)
        promise?.succeed(())
    }

    /// Notifies the handlers that the channel is active.
    final func finishActivation() {
        state = .active
        pipeline.syncOperations.fireChannelActive()
    }

    /// Closes the channel and notifies the handlers.
    ///
    /// - Parameter release: called when the channel is closed, before promises and handlers are notified.
    final func closeAll(_ promise: EventLoopPromise<Void>?, release: () -> Void) {
        let former = state
        state = .closed
        activity.store(false, ordering: .relaxed)
        loopOfChannel.forget(self)
        release()
        promise?.succeed(())
        if former == .active { pipeline.syncOperations.fireChannelInactive() }
        if former != .fresh { pipeline.syncOperations.fireChannelUnregistered() }
        loopOfChannel._executeIsolatedUnsafeUnchecked { [self] in
            // Later, because handlers of the pipeline may be on the stack.
            removeHandlers(pipeline: pipeline)
            closePromise.succeed(())
            shared.withLock { ($0.local, $0.remote) = (nil, nil) }
        }
    }

    /// Ends the event loop with its run loop, or closes a channel whose descriptor can no longer be watched.
    final func lostItsLoop() {
        guard !loopOfChannel.endsWithLoop() else { return }
        close0(error: IOError(errnoCode: EBADF, reason: "watch the descriptor"), mode: .all, promise: nil)
    }

    /// Asks the handlers to read if no read is pending and the channel reads automatically.
    func readIfNeeded() {
        if isLive, !readPending, autoRead { withHandlers { $0.read() } }
    }

    final func fail(_ promise: EventLoopPromise<Void>?, _ error: any Error) { promise?.fail(error) }

    // MARK: Operations, for each kind of channel

    func bind0(to address: SocketAddress, promise: EventLoopPromise<Void>?) { refuse(promise) }

    func connect0(to address: SocketAddress, promise: EventLoopPromise<Void>?) { refuse(promise) }

    func registerAlreadyConfigured0(promise: EventLoopPromise<Void>?) { refuse(promise) }

    func write0(_ data: NIOAny, promise: EventLoopPromise<Void>?) { refuse(promise) }

    func flush0() {}

    /// Sends the output that the event loop's flush group has deferred.
    func sendDeferred() {}

    func read0() {}

    /// Stops reading until the handlers ask for input.
    func pauseReading() { readPending = false }

    func channelRead0(_ data: NIOAny) {}

    func errorCaught0(error: any Error) {}

    func triggerUserOutboundEvent0(_ event: Any, promise: EventLoopPromise<Void>?) { refuse(promise) }

    func close0(error: any Error, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard isOpen else { return fail(promise, ChannelError.alreadyClosed) }
        guard mode == .all else { return fail(promise, ChannelError.operationUnsupported) }
        closeAll(promise) { release(error) }
    }

    /// Releases the socket of a closed channel, and fails its output.
    func release(_ error: any Error) {}

    private func refuse(_ promise: EventLoopPromise<Void>?) {
        fail(promise, isOpen ? ChannelError.operationUnsupported : ChannelError.ioOnClosedChannel)
    }

    // MARK: Options

    /// The descriptor for socket options; `nil` if there is none yet.
    var socket: Int32? { nil }

    /// Returns whether a socket option was switched on before there was a socket.
    final func isSet(_ name: Int32) -> Bool {
        socketOptions.contains { option, value in
            option.optionLevel == .socket && option.optionName.rawValue == name && value != 0
        }
    }

    final var syncOptions: (any NIOSynchronousChannelOptions)? { self }

    final func setOption<Option: ChannelOption>(_ option: Option, value: Option.Value) -> EventLoopFuture<Void> {
        eventLoop.submit { try self.setOption(option, value: value) }
    }

    final func getOption<Option: ChannelOption>(_ option: Option) -> EventLoopFuture<Option.Value> {
        eventLoop.submit { try self.getOption(option) }
    }

    final func setOption<Option: ChannelOption>(_ option: Option, value: Option.Value) throws {
        guard isOpen else { throw ChannelError.ioOnClosedChannel }
        switch (option, value) {
        case (_ as ChannelOptions.Types.AutoReadOption, let value as Bool):
            guard autoRead != value else { return }
            autoRead = value
            guard state != .fresh else { return }
            if value { read0() } else { pauseReading() }
        case (_ as ChannelOptions.Types.AllocatorOption, let value as ByteBufferAllocator):
            shared.withLock { $0.allocator = value }
            allocatorWasChosen()
        case (let option as ChannelOptions.Types.SocketOption, let value as SocketOptionValue):
            if let socket, let system {
                try system.set((option, value), of: socket)
            } else {
                socketOptions.append((option, value))
            }
        default: guard set(option, to: value) else { throw ChannelError.operationUnsupported }
        }
    }

    final func getOption<Option: ChannelOption>(_ option: Option) throws -> Option.Value {
        guard isOpen else { throw ChannelError.ioOnClosedChannel }
        let value: Any? =
            switch option {
            case _ as ChannelOptions.Types.AutoReadOption: autoRead
            case _ as ChannelOptions.Types.AllocatorOption: allocator
            case let option as ChannelOptions.Types.SocketOption:
                socket.flatMap { system?.value(of: option, of: $0) }
            default: value(of: option)
            }
        guard let value = value as? Option.Value else { throw ChannelError.operationUnsupported }
        return value
    }

    /// Responds to the program's choice of a buffer allocator.
    func allocatorWasChosen() {}

    /// Sets an option that only some channels have; `false` if this channel does not have it.
    func set(_ option: Any, to value: Any) -> Bool { false }

    /// Returns the value of an option that only some channels have.
    func value(of option: Any) -> Any? { nil }
}

/// A socket option with its value.
typealias SocketOption = (option: ChannelOptions.Types.SocketOption, value: SocketOptionValue)

extension SystemCalls {
    func set(_ option: SocketOption, of descriptor: Int32) throws(IOError) {
        let status = setOption(
            descriptor, option.option.optionLevel.rawValue, option.option.optionName.rawValue,
            Int32(truncatingIfNeeded: option.value))
        if status != 0 { throw IOError(errnoCode: errno, reason: "set an option of the socket") }
    }

    fileprivate func value(
        of option: ChannelOptions.Types.SocketOption, of descriptor: Int32
    ) -> SocketOptionValue? {
        self.option(descriptor, option.optionLevel.rawValue, option.optionName.rawValue).map { SocketOptionValue($0) }
    }
}
#endif
