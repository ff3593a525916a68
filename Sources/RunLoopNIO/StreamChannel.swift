#if Adapters
internal import Glibc
internal import NIOCore
internal import RunLoopCore
internal import RunLoopKit
internal import RunLoopUnix
internal import Synchronization

/// A channel over a stream: a socket, a pipe, TLS above one of these, or their counterparts in a simulation.
///
/// Its order of events is that of SwiftNIO's socket channels, with one difference: the end of the peer is part of the
/// input, and comes when the program reads. A channel without `autoRead` is not read to its end before.
// Unchecked: all state without a lock is used on the loop's thread only.
final class StreamChannel: Channel, ChannelCore, @unchecked Sendable {
    private enum State {
        case fresh, registered, activating, active, closed
    }

    /// Values that any thread may ask for.
    private struct Shared {
        var local: SocketAddress?
        var remote: SocketAddress?
        var allocator = ByteBufferAllocator()
    }

    let loopOfChannel: RunLoopEventLoop
    let parent: (any Channel)?
    private let closePromise: EventLoopPromise<Void>
    private let shared = Locked(Shared())
    private let activity = Atomic(false)
    private let writability = Atomic(true)
    /// The writability of which the handlers know.
    private var knownWritability = true
    private var storedPipeline: ChannelPipeline!

    private var state = State.fresh
    private var stream: (any ByteStream)?
    private var attempt: ConnectionAttempt?
    private var connectPromise: EventLoopPromise<Void>?

    // Reading.
    private var readPending = false
    private var autoRead = true
    private var isInputShut = false
    private var reads: NIOPooledRecvBufferAllocator
    private var maxMessagesPerRead: UInt = 4
    private var hasTurn = false
    /// Whether ``readSome()`` is on the stack. It watches the stream when it is done: until then a handler may stop reading
    /// and go on, which would take two calls of the system for each request of HTTP.
    private var isReading = false

    // Writing.
    private var writes = PendingWrites()
    private var completed: [EventLoopPromise<Void>] = []
    private var isFlushing = false
    private var isBlocked = false
    private var isOutputShut = false
    private var outputClosing: EventLoopPromise<Void>??
    private var waterMark = ChannelOptions.Types.WriteBufferWaterMark(low: 32 * 1024, high: 64 * 1024)
    private var writeSpin: UInt = 16

    private var allowsHalfClosure = false
    private var connectTimeout: TimeAmount? = .seconds(10)
    /// Options of the socket that were set before there was one.
    private var socketOptions: [SocketOption] = []

    /// - Parameters:
    ///   - stream: an open stream; `nil` for a channel that is still to connect.
    ///   - remote: the address of the peer.
    init(
        _ stream: (any ByteStream)?, peer: Endpoint? = nil, on eventLoop: RunLoopEventLoop, parent: (any Channel)? = nil
    ) {
        (loopOfChannel, self.stream, self.parent) = (eventLoop, stream, parent)
        closePromise = eventLoop.makePromise()
        reads = NIOPooledRecvBufferAllocator(capacity: 4, recvAllocator: AdaptiveRecvByteBufferAllocator())
        storedPipeline = ChannelPipeline(channel: self)
        if let peer { shared.withLock { $0.remote = SocketAddress(peer) } }
    }

    // MARK: Answers, on any thread

    var eventLoop: any EventLoop { loopOfChannel }
    var pipeline: ChannelPipeline { storedPipeline }
    var closeFuture: EventLoopFuture<Void> { closePromise.futureResult }
    var allocator: ByteBufferAllocator { shared.withLock { $0.allocator } }
    var localAddress: SocketAddress? { shared.withLock { $0.local } }
    var remoteAddress: SocketAddress? { shared.withLock { $0.remote } }
    var isActive: Bool { activity.load(ordering: .relaxed) }
    var isWritable: Bool { writability.load(ordering: .relaxed) }
    var _channelCore: any ChannelCore { self }

    func localAddress0() throws -> SocketAddress { try address(\.local) }

    func remoteAddress0() throws -> SocketAddress { try address(\.remote) }

    private func address(_ which: KeyPath<Shared, SocketAddress?>) throws -> SocketAddress {
        guard isOpen else { throw ChannelError.ioOnClosedChannel }
        guard let address = shared.withLock({ $0[keyPath: which] }) else { throw ChannelError.operationUnsupported }
        return address
    }

    private var isOpen: Bool { state != .closed }
    private var isLive: Bool { state == .activating || state == .active }

    private var system: (any SystemCalls)? { loopOfChannel.loop.map { WorldSystem.of($0) } }

    // MARK: Beginning

    func register0(promise: EventLoopPromise<Void>?) {
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

    /// Registers a channel whose stream is open, and makes it active.
    func registerAlreadyConfigured0(promise: EventLoopPromise<Void>?) {
        let registration = eventLoop.makePromise(of: Void.self)
        registration.futureResult.cascadeFailure(to: promise)
        register0(promise: registration)
        if state == .registered { becomeActive(promise) }
    }

    func bind0(to address: SocketAddress, promise: EventLoopPromise<Void>?) {
        fail(promise, isOpen ? ChannelError.operationUnsupported : ChannelError.ioOnClosedChannel)
    }

    /// Connects, or activates a channel whose socket is connected already.
    func connect0(to address: SocketAddress, promise: EventLoopPromise<Void>?) {
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
            return close0(error: error.ioError, mode: .all, promise: nil)
        }
        let timeout = connectTimeout ?? .seconds(365 * 24 * 3600)
        let attempt = ConnectionAttempt(
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
            case .failure(let error):
                connectPromise = promise
                close0(error: Self.error(error, timeout: connectTimeout), mode: .all, promise: nil)
            }
        }
        (self.attempt, connectPromise) = (attempt, promise)
        attempt.begin()
    }

    /// The error of an attempt to connect as SwiftNIO's handlers expect it.
    static func error(_ error: Connection.ConnectError, timeout: TimeAmount?) -> any Error {
        guard case .addresses(let errors) = error, let first = errors.first else { return error }
        if first.errno == ETIMEDOUT, let timeout { return ChannelError.connectTimeout(timeout) }
        return first.ioError
    }

    private func becomeActive(_ promise: EventLoopPromise<Void>?) {
        guard let stream, let loop = loopOfChannel.loop, let system else {
            return close0(error: EventLoopError.shutdown, mode: .all, promise: promise)
        }
        do {
            stream.owner = self
            try stream.open(
                on: loop, modes: loopOfChannel.modes, origin: RunLoop.Origin(file: #fileID, line: #line), interest: [])
        } catch {
            return close0(error: error, mode: .all, promise: promise)
        }
        for option in socketOptions { system.set(option, of: stream.fileDescriptor) }
        if stream.fileDescriptor >= 0 {
            let local = SocketAddress(system.localAddress(of: stream.fileDescriptor))
            shared.withLock { $0.local = local }
        }
        state = .activating
        activity.store(true, ordering: .relaxed)
        promise?.succeed(())
        guard state == .activating else { return }
        // Until a handshake is done, nothing can be sent, and handlers learn of an active channel.
        guard stream.isOpen else { return updateInterest() }
        finishActivation()
    }

    private func finishActivation() {
        state = .active
        pipeline.syncOperations.fireChannelActive()
        guard isOpen else { return }
        flushNow()
        readIfNeeded()
        updateInterest()
    }

    // MARK: Reading

    func read0() {
        guard isOpen, !isInputShut else { return }
        readPending = true
        updateInterest()
    }

    private func readIfNeeded() {
        if isLive, !isInputShut, !readPending, autoRead { pipeline.syncOperations.read() }
    }

    /// Watches the stream for the events that the channel waits for.
    private func updateInterest() {
        guard isLive, !isReading, let stream else { return }
        var interest: DescriptorEvents = []
        if readPending && !isInputShut && state == .active { interest.insert(.readable) }
        if isBlocked { interest.insert(.writable) }
        if stream.interest != interest { stream.interest = interest }
        // The stream reports no readiness for bytes that it holds.
        guard interest.contains(.readable), stream.holdsInput, !hasTurn else { return }
        hasTurn = true
        loopOfChannel._executeIsolatedUnsafeUnchecked { [self] in
            hasTurn = false
            if state == .active, readPending, !isInputShut { readSome() }
        }
    }

    private enum Input {
        case some, none, ended
        case failed(any Error)
    }

    /// Reads and passes on some input, at most ``maxMessagesPerRead`` buffers.
    private func receive() -> Input {
        var input = Input.none
        for _ in 0..<maxMessagesPerRead {
            guard isLive, !isInputShut, let stream else { return .ended }
            var result = StreamResult.mustWait
            let (buffer, count) = reads.buffer(allocator: allocator) { buffer in
                buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: 1) { room in
                    result = stream.read(into: room)
                    if case .done(let count) = result { return count }
                    return 0
                }
            }
            switch result {
            case .done:
                reads.record(actualReadBytes: count)
                readPending = false
                input = .some
                let isFull = buffer.writableBytes == 0
                pipeline.syncOperations.fireChannelRead(NIOAny(buffer))
                // Otherwise another call would most likely find nothing.
                guard isFull || stream.holdsInput else { return input }
            case .mustWait: return input
            case .ended: return .ended
            case .failed: return .failed(streamError)
            }
        }
        return input
    }

    private func readSome() {
        isReading = true
        readAndReport()
        isReading = false
        updateInterest()
    }

    private func readAndReport() {
        switch receive() {
        case .some: break
        case .none: return
        case .ended:
            guard isLive, !isInputShut else { return }
            pipeline.syncOperations.fireChannelReadComplete()
            close0(error: ChannelError.eof, mode: allowsHalfClosure ? .input : .all, promise: nil)
            readPending = false
            return
        case .failed(let error):
            pipeline.syncOperations.fireErrorCaught(error)
            return close0(error: error, mode: .all, promise: nil)
        }
        if isLive { pipeline.syncOperations.fireChannelReadComplete() }
        readIfNeeded()
    }

    private var streamError: any Error {
        guard let failure = stream?.failure else { return IOError(errnoCode: EIO, reason: "use the stream") }
        return (failure as? SystemError)?.ioError ?? failure
    }

    func channelRead0(_ data: NIOAny) {}

    func errorCaught0(error: any Error) {}

    // MARK: Writing

    func write0(_ data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard isOpen else { return fail(promise, ChannelError.ioOnClosedChannel) }
        guard !isOutputShut else { return fail(promise, ChannelError.outputClosed) }
        writes.add(unwrapData(data, as: IOData.self), promise)
        guard writes.bytes > waterMark.high, writability.load(ordering: .relaxed) else { return }
        writability.store(false, ordering: .relaxed)
        knownWritability = false
        pipeline.syncOperations.fireChannelWritabilityChanged()
    }

    func flush0() {
        guard isOpen else { return }
        writes.flush()
        guard isLive, !isBlocked else { return }
        flushNow()
        updateInterest()
    }

    /// Sends flushed output until the stream takes no more, or has taken all. The first of nested calls does all.
    private func flushNow() {
        guard !isFlushing, isLive, let stream, stream.isOpen else { return }
        isFlushing = true
        defer { isFlushing = false }
        while isOpen, writes.hasFlushed, !isBlocked {
            let progress = flushOnce(to: stream)
            if progress == .failed { return outputHasFailed() }
            let endsOutput = outputClosing != nil
            if !knownWritability, isWritable {
                knownWritability = true
                pipeline.syncOperations.fireChannelWritabilityChanged()
            }
            guard isOpen else { return }
            if progress == .complete {
                guard endsOutput, !isOutputShut else { continue }
                if isInputShut { return closeAll(ChannelError.outputClosed, nil) }
                if writes.isEmpty { endOutput(stream) }
            } else {
                // If the stream takes more at once, the others have their turn nevertheless.
                isBlocked = writes.hasFlushed
            }
        }
    }

    /// Sends flushed output, with at most so many calls of which the stream takes only a part.
    private func flushOnce(to stream: any ByteStream) -> PendingWrites.Progress {
        var spins = writeSpin + 1
        while isOpen, writes.hasFlushed {
            let progress = writes.write(to: stream, completed: &completed)
            if writes.bytes < waterMark.low { writability.store(true, ordering: .relaxed) }
            fulfil()
            switch progress {
            case .complete: break
            case .partial:
                spins -= 1
                if spins == 0 { return .partial }
            case .blocked, .failed: return progress
            }
        }
        return .complete
    }

    /// Fulfils the promises of output that the stream has taken.
    private func fulfil() {
        guard !completed.isEmpty else { return }
        var promises: [EventLoopPromise<Void>] = []
        swap(&promises, &completed)
        for promise in promises { promise.succeed(()) }
        // Keeps the memory.
        promises.removeAll(keepingCapacity: true)
        if completed.isEmpty { swap(&promises, &completed) }
    }

    /// The peer may have sent something before the stream failed; it is read first.
    private func outputHasFailed() {
        let error = streamError
        readIfNeeded()
        if readPending {
            var hasRead = false
            while case .some = receive() { hasRead = true }
            if hasRead, isLive { pipeline.fireChannelReadComplete() }
        }
        close0(error: error, mode: .all, promise: nil)
    }

    /// Ends the output, of which everything is written.
    private func endOutput(_ stream: any ByteStream) {
        switch stream.endWriting() {
        case .mustWait: isBlocked = true
        case .failed: outputHasFailed()
        case .done, .ended:
            let promise = outputClosing ?? nil
            (outputClosing, isOutputShut) = (nil, true)
            promise?.succeed(())
            pipeline.fireUserInboundEventTriggered(ChannelEvent.outputClosed)
        }
    }

    // MARK: Closing

    func close0(error: any Error, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard isOpen else { return fail(promise, ChannelError.alreadyClosed) }
        switch mode {
        case .all: closeAll(error, promise)
        case .output:
            guard !isOutputShut else { return fail(promise, ChannelError.outputClosed) }
            guard !isInputShut else { return closeAll(error, promise) }
            guard isLive, let stream else { return fail(promise, ChannelError.inappropriateOperationForState) }
            if let first = outputClosing ?? nil {
                first.futureResult.cascade(to: promise)
            } else {
                outputClosing = .some(promise)
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

    private func closeAll(_ error: any Error, _ promise: EventLoopPromise<Void>?) {
        let former = state
        state = .closed
        activity.store(false, ordering: .relaxed)
        loopOfChannel.forget(self)
        attempt?.cancel()
        let stream = stream.take()
        stream?.close(writes.isEmpty ? .complete : .incomplete)
        let (unsent, connecting, closing) = (writes.removeAll(), connectPromise.take(), outputClosing ?? nil)
        (attempt, outputClosing, isBlocked) = (nil, nil, false)

        // The state is in order: everything below may call the program.
        for unsent in unsent { unsent.fail(error) }
        closing?.fail(error)
        connecting?.fail(error)
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

    private func fail(_ promise: EventLoopPromise<Void>?, _ error: any Error) { promise?.fail(error) }

    func triggerUserOutboundEvent0(_ event: Any, promise: EventLoopPromise<Void>?) {
        fail(promise, ChannelError.operationUnsupported)
    }
}

extension StreamChannel: StreamOwner {
    func streamOpened() {
        if state == .activating { finishActivation() }
    }

    func streamIsReady(for events: DescriptorEvents) {
        if events.contains(.writable), isLive {
            isBlocked = false
            flushNow()
        }
        // A handler runs the loop. It gets more input when it has returned.
        if isReading, isLive, let stream { return stream.interest = isBlocked ? .writable : [] }
        if events.contains(.readable), state == .active, readPending, !isInputShut { return readSome() }
        updateInterest()
    }

    func streamFailed() {
        guard isOpen else { return }
        let error = streamError
        pipeline.syncOperations.fireErrorCaught(error)
        close0(error: error, mode: .all, promise: nil)
    }

    func streamLostItsLoop() {
        loopOfChannel.end()
    }
}

// MARK: Options

extension StreamChannel: NIOSynchronousChannelOptions {
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
            guard state != .fresh else { return }
            if value { read0() } else { readPending = false }
            updateInterest()
        case (_ as ChannelOptions.Types.AllowRemoteHalfClosureOption, let value as Bool): allowsHalfClosure = value
        case (_ as ChannelOptions.Types.WriteSpinOption, let value as UInt): writeSpin = value
        case (
            _ as ChannelOptions.Types.WriteBufferWaterMarkOption, let value as ChannelOptions.Types.WriteBufferWaterMark
        ):
            waterMark = value
        case (_ as ChannelOptions.Types.ConnectTimeoutOption, let value as TimeAmount?): connectTimeout = value
        case (_ as ChannelOptions.Types.AllocatorOption, let value as ByteBufferAllocator):
            shared.withLock { $0.allocator = value }
        case (_ as ChannelOptions.Types.RecvAllocatorOption, let value as any RecvByteBufferAllocator):
            reads.recvAllocator = value
        case (_ as ChannelOptions.Types.MaxMessagesPerReadOption, let value as UInt):
            maxMessagesPerRead = max(1, value)
            reads.updateCapacity(to: Int(clamping: maxMessagesPerRead))
        case (let option as ChannelOptions.Types.SocketOption, let value as SocketOptionValue):
            if isLive, let stream, let system {
                system.set((option, value), of: stream.fileDescriptor)
            } else {
                socketOptions.append((option, value))
            }
        default: throw ChannelError.operationUnsupported
        }
    }

    func getOption<Option: ChannelOption>(_ option: Option) throws -> Option.Value {
        guard isOpen else { throw ChannelError.ioOnClosedChannel }
        let value: Any? =
            switch option {
            case _ as ChannelOptions.Types.AutoReadOption: autoRead
            case _ as ChannelOptions.Types.AllowRemoteHalfClosureOption: allowsHalfClosure
            case _ as ChannelOptions.Types.WriteSpinOption: writeSpin
            case _ as ChannelOptions.Types.WriteBufferWaterMarkOption: waterMark
            case _ as ChannelOptions.Types.BufferedWritableBytesOption: writes.bytes
            case _ as ChannelOptions.Types.ConnectTimeoutOption: connectTimeout
            case _ as ChannelOptions.Types.AllocatorOption: allocator
            case _ as ChannelOptions.Types.RecvAllocatorOption: reads.recvAllocator
            case _ as ChannelOptions.Types.MaxMessagesPerReadOption: maxMessagesPerRead
            case let option as ChannelOptions.Types.SocketOption:
                stream.flatMap { system?.value(of: option, of: $0.fileDescriptor) }
            default: nil
            }
        guard let value = value as? Option.Value else { throw ChannelError.operationUnsupported }
        return value
    }
}
#endif
