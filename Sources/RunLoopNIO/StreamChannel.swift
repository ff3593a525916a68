#if Adapters
internal import Glibc
internal import NIOCore
internal import NIOTLS
@_spi(Ports) internal import RunLoopKit
@_spi(Ports) internal import RunLoopTLS
@_spi(Ports) internal import RunLoopUnix
internal import Synchronization

/// A channel over a stream: a socket, or its counterpart in a simulation.
///
/// Events come in the order of SwiftNIO's socket channels, with one difference: the end of the peer's output is part of
/// the input, and comes when the program reads. A channel without `autoRead` does not see it earlier.
// Unchecked like its superclass.
final class StreamChannel: LoopChannel, @unchecked Sendable {
    // State that is changed in place for each message opts out of run-time exclusivity checks: only the loop's thread
    // uses it, and no access is open while handlers are called. Its checks took a sixth of an echo (decision 23).

    enum Reading {
        case none
        /// ``readSome(from:)`` is on the stack. The stream is watched again only when it returns, because a handler that
        /// stops and resumes reading would cost two system calls per HTTP request.
        case running(sendsNextFlush: Bool)
    }

    enum Output {
        case open
        /// The output ends when everything has been written.
        case closing(EventLoopPromise<Void>?)
        case shut
    }

    let writability = Atomic(true)
    /// The writability last reported to the handlers.
    var knownWritability = true
    var stream: (any ByteStream)?
    /// The closure that wraps the connected stream in another, such as TLS.
    private let layer: Layer?
    private var attempt: ConnectionAttempt?
    private var connectPromise: EventLoopPromise<Void>?

    // Reading.
    var isInputShut: Bool
    /// The sizes of the buffers that the channel requests from the event loop.
    @exclusivity(unchecked) var sizes = AdaptiveRecvByteBufferAllocator()
    /// The channel's own buffers, once the program has chosen an allocator.
    var ownBuffers: OwnBuffers?
    var maxMessagesPerRead: UInt = 4
    var hasTurn = false
    var reading = Reading.none

    // Writing.
    @exclusivity(unchecked) var writes = PendingWrites()
    @exclusivity(unchecked) var completed: [EventLoopPromise<Void>] = []
    var isFlushing = false
    /// True while flushed output waits in the event loop's flush group.
    var isDeferred = false
    var isBlocked = false
    var output: Output
    var waterMark = ChannelOptions.Types.WriteBufferWaterMark(
        low: 32 * 1024, high: 64 * 1024)
    var writeSpin: UInt = 16
    /// The maximum number of bytes that wait to be sent with other output.
    static let mostDeferred = 16 * 1024

    var allowsHalfClosure = false
    private var connectTimeout: TimeAmount? = .seconds(10)

    typealias Layer = @Sendable (any ByteStream) throws -> any ByteStream

    /// - Parameters:
    ///   - stream: an open stream; `nil` for a channel that has yet to connect.
    ///   - isRead: whether there is input; `false` for a pipe that is only written.
    ///   - layer: wraps the stream in another before the channel is active.
    init(
        _ stream: (any ByteStream)?, peer: Endpoint? = nil, isRead: Bool = true, isWritten: Bool = true,
        under layer: Layer? = nil, on eventLoop: RunLoopEventLoop, parent: (any Channel)? = nil
    ) {
        (self.stream, self.layer) = (stream, layer)
        (isInputShut, output) = (!isRead, isWritten ? .open : .shut)
        super.init(on: eventLoop, parent: parent)
        if let peer { shared.withLock { $0.remote = SocketAddress(peer) } }
    }

    var isReading: Bool { if case .running = reading { true } else { false } }
    var isOutputShut: Bool { if case .shut = output { true } else { false } }
    var isOutputClosing: Bool { if case .closing = output { true } else { false } }

    override var isWritable: Bool { writability.load(ordering: .relaxed) }

    // MARK: Beginning

    /// Registers a channel whose stream is open, and makes it active.
    override func registerAlreadyConfigured0(promise: EventLoopPromise<Void>?) {
        let registration = eventLoop.makePromise(of: Void.self)
        registration.futureResult.cascadeFailure(to: promise)
        register0(promise: registration)
        if state == .registered { becomeActive(promise) }
    }

    /// Connects, or activates a channel whose socket is already connected.
    override func connect0(to address: SocketAddress, promise: EventLoopPromise<Void>?) {
        guard isOpen else { return fail(promise, ChannelError.ioOnClosedChannel) }
        guard attempt == nil else { return fail(promise, ChannelError.connectPending) }
        guard state == .registered, let loop = loopOfChannel.loop else {
            return fail(promise, ChannelError.inappropriateOperationForState)
        }
        guard stream == nil else { return becomeActive(promise) }
        let endpoint: Endpoint
        do {
            endpoint = try Endpoint(address)
        } catch {
            return fail(toConnect: promise, error.ioError)
        }
        let timeout = connectTimeout ?? .seconds(365 * 24 * 3600)
        connectPromise = promise
        attempt = ConnectionAttempt(
            .address(endpoint), on: loop, loopOfChannel.modes, timeout: Duration(timeout), retry: nil,
            RunLoop.Origin(file: #fileID, line: #line)
        ) { [self] result in
            let promise = connectPromise.take()
            self.attempt = nil
            switch result {
            case .success(let stream):
                self.stream = stream
                shared.withLock { $0.remote = address }
                becomeActive(promise)
            case .failure(let error): fail(toConnect: promise, Self.error(error, timeout: connectTimeout))
            }
        }
    }

    /// Closes the channel, and fails the connect promise.
    private func fail(toConnect promise: EventLoopPromise<Void>?, _ error: any Error) {
        connectPromise = promise
        close0(error: error, mode: .all, promise: nil)
    }

    /// Returns the error of a connection attempt in the form that SwiftNIO's handlers expect.
    static func error(_ error: Connection.ConnectError, timeout: TimeAmount?) -> any Error {
        guard case .addresses(let errors) = error, let first = errors.first else { return error }
        if first.errno == ETIMEDOUT, let timeout { return ChannelError.connectTimeout(timeout) }
        return first.ioError
    }

    private func becomeActive(_ promise: EventLoopPromise<Void>?) {
        guard let connected = stream, let loop = loopOfChannel.loop, let system else {
            return fail(toConnect: promise, EventLoopError.shutdown)
        }
        let stream: any ByteStream
        do {
            stream = try layer?(connected) ?? connected
            self.stream = stream
            stream.owner = self
            try stream.open(
                on: loop, inModes: loopOfChannel.modes, origin: RunLoop.Origin(file: #fileID, line: #line),
                interest: .readable)
            for option in socketOptions { try system.set(option, of: stream.fileDescriptor) }
        } catch {
            return fail(toConnect: promise, error)
        }
        if stream.fileDescriptor >= 0 {
            let local = SocketAddress(system.localAddress(of: stream.fileDescriptor))
            shared.withLock { $0.local = local }
        }
        beginActivation(promise)
        guard state == .activating else { return }
        // During a handshake nothing can be sent, and handlers are not yet notified.
        guard stream.isOpen else { return updateInterest() }
        begin()
    }

    /// The TLS session below the channel.
    var tls: TLSSession? { stream?.tls }

    /// Starts reading and writing.
    func begin() {
        finishActivation()
        if let tls, isOpen {
            pipeline.syncOperations.fireUserInboundEventTriggered(
                TLSUserEvent.handshakeCompleted(negotiatedProtocol: tls.applicationProtocol))
        }
        guard isOpen else { return }
        flushNow()
        readIfNeeded()
        updateInterest()
    }

    // MARK: Reading

    override func read0() {
        guard isOpen, !isInputShut else { return }
        readPending = true
        updateInterest()
    }

    override func pauseReading() {
        super.pauseReading()
        updateInterest()
    }

    override func readIfNeeded() {
        if !isInputShut { super.readIfNeeded() }
    }

    // MARK: Writing

    override func write0(_ data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard isOpen else { return fail(promise, ChannelError.ioOnClosedChannel) }
        guard !isOutputShut else { return fail(promise, ChannelError.outputClosed) }
        let data = unwrapData(data, as: IOData.self)
        // Deferred output does not count towards the high-water mark.
        if writes.bytes + data.readableBytes > waterMark.high {
            flushDeferred()
            guard isOpen else { return fail(promise, ChannelError.ioOnClosedChannel) }
        }
        writes.add(consume data, promise)
        guard writes.bytes > waterMark.high, writability.load(ordering: .relaxed) else { return }
        writability.store(false, ordering: .relaxed)
        knownWritability = false
        pipeline.syncOperations.fireChannelWritabilityChanged()
    }

    override func flush0() {
        guard isOpen else { return }
        writes.flush()
        guard isLive, !isBlocked, writes.hasFlushed, !deferFlush() else { return }
        flushNow()
        if isBlocked { updateInterest() }
    }

    override func sendDeferred() {
        flushDeferred()
        if isBlocked { updateInterest() }
    }

    // MARK: Closing

    override func close0(error: any Error, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        flushDeferred()
        guard isOpen else { return fail(promise, ChannelError.alreadyClosed) }
        switch mode {
        case .all: closeAll(error, promise)
        case .output:
            guard !isOutputShut else { return fail(promise, ChannelError.outputClosed) }
            guard !isInputShut else { return closeAll(error, promise) }
            guard isLive, let stream else { return fail(promise, ChannelError.inappropriateOperationForState) }
            if case .closing(let first?) = output {
                first.futureResult.cascade(to: promise)
            } else {
                output = .closing(promise)
            }
            if writes.isEmpty { endOutput(stream) }
            updateInterest()
        case .input:
            guard !isInputShut else { return fail(promise, ChannelError.inputClosed) }
            guard !isOutputShut else { return closeAll(error, promise) }
            isInputShut = true
            updateInterest()
            promise?.succeed(())
            pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        }
    }

    func closeAll(_ error: any Error, _ promise: EventLoopPromise<Void>?) {
        closeAll(promise) {
            attempt?.cancel()
            let stream = stream.take()
            stream?.close(writes.isEmpty ? .complete : .incomplete)
            let (unsent, connecting, output) = (writes.removeAll(), connectPromise.take(), output)
            (attempt, isBlocked) = (nil, false)
            if case .closing = output { self.output = .open }
            // The state is consistent: everything below may call the program.
            for unsent in unsent { unsent.fail(error) }
            if case .closing(let promise) = output { promise?.fail(error) }
            connecting?.fail(error)
        }
    }

    // MARK: Options

    override var socket: Int32? { isLive ? stream?.fileDescriptor : nil }

    override func set(_ option: Any, to value: Any) -> Bool {
        switch (option, value) {
        case (_ as ChannelOptions.Types.AllowRemoteHalfClosureOption, let value as Bool): allowsHalfClosure = value
        case (_ as ChannelOptions.Types.WriteSpinOption, let value as UInt): writeSpin = value
        case (
            _ as ChannelOptions.Types.WriteBufferWaterMarkOption, let value as ChannelOptions.Types.WriteBufferWaterMark
        ): waterMark = value
        case (_ as ChannelOptions.Types.ConnectTimeoutOption, let value as TimeAmount?): connectTimeout = value
        case (_ as ChannelOptions.Types.RecvAllocatorOption, let value as any RecvByteBufferAllocator):
            useOwnBuffers(value)
        case (_ as ChannelOptions.Types.MaxMessagesPerReadOption, let value as UInt):
            maxMessagesPerRead = max(1, value)
            ownBuffers?.setCapacity(to: maxMessagesPerRead)
        default: return false
        }
        return true
    }

    private func useOwnBuffers(_ allocator: any RecvByteBufferAllocator) {
        ownBuffers = OwnBuffers(capacity: maxMessagesPerRead, allocator)
    }

    override func allocatorWasChosen() {
        if ownBuffers == nil { useOwnBuffers(sizes) }
    }

    override func value(of option: Any) -> Any? {
        switch option {
        case _ as ChannelOptions.Types.AllowRemoteHalfClosureOption: allowsHalfClosure
        case _ as ChannelOptions.Types.WriteSpinOption: writeSpin
        case _ as ChannelOptions.Types.WriteBufferWaterMarkOption: waterMark
        case _ as ChannelOptions.Types.BufferedWritableBytesOption: writes.bytes
        case _ as ChannelOptions.Types.ConnectTimeoutOption: connectTimeout
        case _ as ChannelOptions.Types.RecvAllocatorOption: ownBuffers?.allocator ?? sizes
        case _ as ChannelOptions.Types.MaxMessagesPerReadOption: maxMessagesPerRead
        default: nil
        }
    }
}

#endif
