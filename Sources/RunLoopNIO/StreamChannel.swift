#if Adapters
internal import Glibc
internal import NIOCore
internal import NIOTLS
internal import RunLoopKit
internal import RunLoopTLS
internal import RunLoopUnix
internal import Synchronization

/// A channel over a stream: a socket, or its counterpart in a simulation.
///
/// Its order of events is that of SwiftNIO's socket channels, with one difference: the end of the peer is part of the
/// input, and comes when the program reads. A channel without `autoRead` is not read to its end before.
// Unchecked as its superclass.
final class StreamChannel: LoopChannel, @unchecked Sendable {
    // What each message touches opts out of run-time exclusivity checks: only the loop's thread uses it, and no access is
    // open while handlers are called. An echo took 1,500 more instructions with them (decision 23).

    private let writability = Atomic(true)
    /// The writability of which the handlers know.
    @exclusivity(unchecked) private var knownWritability = true
    @exclusivity(unchecked) private var stream: (any ByteStream)?
    /// Lays a stream over the connected one, such as TLS.
    private let layer: Layer?
    private var attempt: ConnectionAttempt?
    private var connectPromise: EventLoopPromise<Void>?

    // Reading.
    @exclusivity(unchecked) private var isInputShut: Bool
    /// The sizes of the buffers of the event loop that the channel asks for.
    @exclusivity(unchecked) private var sizes = AdaptiveRecvByteBufferAllocator()
    /// Buffers of the channel's own, once the program has chosen an allocator.
    @exclusivity(unchecked) private var ownBuffers: NIOPooledRecvBufferAllocator?
    @exclusivity(unchecked) private var maxMessagesPerRead: UInt = 4
    @exclusivity(unchecked) private var hasTurn = false
    /// Whether ``readSome()`` is on the stack. It watches the stream when it is done: until then a handler may stop reading
    /// and go on, which would take two calls of the system for each request of HTTP.
    @exclusivity(unchecked) private var isReading = false

    // Writing.
    @exclusivity(unchecked) private var writes = PendingWrites()
    @exclusivity(unchecked) private var completed: [EventLoopPromise<Void>] = []
    @exclusivity(unchecked) private var isFlushing = false
    @exclusivity(unchecked) private var flushing = Flushing.atOnce
    private var hasFlushTask = false
    @exclusivity(unchecked) private var isBlocked = false
    @exclusivity(unchecked) private var isOutputShut: Bool
    @exclusivity(unchecked) private var outputClosing: EventLoopPromise<Void>??
    @exclusivity(unchecked) private var waterMark = ChannelOptions.Types.WriteBufferWaterMark(
        low: 32 * 1024, high: 64 * 1024)
    @exclusivity(unchecked) private var writeSpin: UInt = 16
    /// The most bytes that wait to be sent with others.
    private static let mostDeferred = 16 * 1024

    private var allowsHalfClosure = false
    private var connectTimeout: TimeAmount? = .seconds(10)

    /// When flushed output is sent. The replies to several requests that were read together leave together, after the first:
    /// one call of the system for all of them.
    private enum Flushing {
        case atOnce
        /// Handlers have input, and the first flush is still to come.
        case firstAtOnce
        /// Handlers have input, and output that is flushed now may wait until they return.
        case together
        /// Flushed output waits for that.
        case deferred
    }

    typealias Layer = @Sendable (any ByteStream) throws -> any ByteStream

    /// - Parameters:
    ///   - stream: an open stream; `nil` for a channel that is still to connect.
    ///   - peer: the address of the peer.
    ///   - isRead: whether there is input; not for a pipe that is only written.
    ///   - isWritten: whether there is output.
    ///   - layer: lays a stream over that one, before the channel is active.
    init(
        _ stream: (any ByteStream)?, peer: Endpoint? = nil, isRead: Bool = true, isWritten: Bool = true,
        under layer: Layer? = nil, on eventLoop: RunLoopEventLoop, parent: (any Channel)? = nil
    ) {
        (self.stream, self.layer) = (stream, layer)
        (isInputShut, isOutputShut) = (!isRead, !isWritten)
        super.init(on: eventLoop, parent: parent)
        if let peer { shared.withLock { $0.remote = SocketAddress(peer) } }
    }

    override var isWritable: Bool { writability.load(ordering: .relaxed) }

    // MARK: Beginning

    /// Registers a channel whose stream is open, and makes it active.
    override func registerAlreadyConfigured0(promise: EventLoopPromise<Void>?) {
        let registration = eventLoop.makePromise(of: Void.self)
        registration.futureResult.cascadeFailure(to: promise)
        register0(promise: registration)
        if state == .registered { becomeActive(promise) }
    }

    /// Connects, or activates a channel whose socket is connected already.
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
            case .failure(let error): fail(toConnect: promise, Self.error(error, timeout: connectTimeout))
            }
        }
        (self.attempt, connectPromise) = (attempt, promise)
        attempt.begin()
    }

    /// Closes the channel, and fails the promise of its connecting.
    private func fail(toConnect promise: EventLoopPromise<Void>?, _ error: any Error) {
        connectPromise = promise
        close0(error: error, mode: .all, promise: nil)
    }

    /// The error of an attempt to connect as SwiftNIO's handlers expect it.
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
                on: loop, modes: loopOfChannel.modes, origin: RunLoop.Origin(file: #fileID, line: #line),
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
        // Until a handshake is done, nothing can be sent, and handlers learn of an active channel.
        guard stream.isOpen else { return updateInterest() }
        begin()
    }

    /// The session of TLS below the channel.
    var tls: TLSSession? { stream?.tls }

    /// Begins to read and write.
    private func begin() {
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
            let (buffer, result) = read(from: stream)
            switch result {
            case .done:
                readPending = false
                input = .some
                let isFull = buffer.writableBytes == 0
                passOn(NIOAny(buffer))
                // Otherwise another call would most likely find nothing.
                guard isFull || stream.holdsInput else { return input }
            case .mustWait: return input
            case .ended: return .ended
            case .failed: return .failed(streamError)
            }
        }
        return input
    }

    private func read(from stream: any ByteStream) -> (NIOCore.ByteBuffer, StreamResult) {
        guard ownBuffers == nil else {
            let (buffer, result) = ownBuffers!.buffer(allocator: allocator) { $0.read(from: stream) }
            if case .done(let count) = result { ownBuffers!.record(actualReadBytes: count) }
            return (buffer, result)
        }
        let (buffer, result) = loopOfChannel.readBuffers.read(sizes.nextBufferSize() ?? 0, from: stream)
        if case .done(let count) = result { _ = sizes.record(actualReadBytes: count) }
        return (buffer, result)
    }

    private func passOn(_ input: NIOAny) {
        flushing = .firstAtOnce
        pipeline.syncOperations.fireChannelRead(input)
        flushDeferred()
        flushing = .atOnce
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
        return failure.forHandlers
    }

    // MARK: Writing

    override func write0(_ data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard isOpen else { return fail(promise, ChannelError.ioOnClosedChannel) }
        guard !isOutputShut else { return fail(promise, ChannelError.outputClosed) }
        let data = unwrapData(data, as: IOData.self)
        // Output that waits does not count.
        if writes.bytes + data.readableBytes > waterMark.high {
            flushDeferred()
            guard isOpen else { return fail(promise, ChannelError.ioOnClosedChannel) }
        }
        writes.add(data, promise)
        guard writes.bytes > waterMark.high, writability.load(ordering: .relaxed) else { return }
        writability.store(false, ordering: .relaxed)
        knownWritability = false
        pipeline.syncOperations.fireChannelWritabilityChanged()
    }

    override func flush0() {
        guard isOpen else { return }
        writes.flush()
        guard isLive, !isBlocked, writes.hasFlushed, !isDeferred() else { return }
        flushNow()
        updateInterest()
    }

    /// Whether output that is flushed now waits until the handlers return. It does not if they would see that.
    private func isDeferred() -> Bool {
        switch flushing {
        case .atOnce: return false
        case .firstAtOnce:
            flushing = .together
            return false
        case .together, .deferred:
            guard !writes.hasPromises, outputClosing == nil, writes.bytes < Self.mostDeferred else { return false }
            flushing = .deferred
            deferFlush()
            return true
        }
    }

    /// Sends deferred output earlier if a handler runs the loop.
    private func deferFlush() {
        guard !hasFlushTask else { return }
        hasFlushTask = true
        loopOfChannel._executeIsolatedUnsafeUnchecked { [self] in
            hasFlushTask = false
            flushDeferred()
            updateInterest()
        }
    }

    private func flushDeferred() {
        guard flushing == .deferred else { return }
        flushing = .together
        flushNow()
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

    override func close0(error: any Error, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        flushDeferred()
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
        closeAll(promise) {
            attempt?.cancel()
            let stream = stream.take()
            stream?.close(writes.isEmpty ? .complete : .incomplete)
            let (unsent, connecting, closing) = (writes.removeAll(), connectPromise.take(), outputClosing ?? nil)
            (attempt, outputClosing, isBlocked) = (nil, nil, false)
            // The state is in order: everything below may call the program.
            for unsent in unsent { unsent.fail(error) }
            closing?.fail(error)
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
            ownBuffers?.updateCapacity(to: Int(clamping: maxMessagesPerRead))
        default: return false
        }
        return true
    }

    private func useOwnBuffers(_ allocator: any RecvByteBufferAllocator) {
        ownBuffers = NIOPooledRecvBufferAllocator(
            capacity: Int(clamping: maxMessagesPerRead), recvAllocator: allocator)
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
        case _ as ChannelOptions.Types.RecvAllocatorOption: ownBuffers?.recvAllocator ?? sizes
        case _ as ChannelOptions.Types.MaxMessagesPerReadOption: maxMessagesPerRead
        default: nil
        }
    }
}

extension StreamChannel: StreamOwner {
    func streamOpened() {
        if state == .activating { begin() }
    }

    func streamIsReady(for events: DescriptorEvents) {
        if events.contains(.writable), isLive {
            isBlocked = false
            flushNow()
            // The stream could not take the end before.
            if outputClosing != nil, writes.isEmpty, let stream { endOutput(stream) }
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
        if !loopOfChannel.endsWithLoop() { close0(error: Self.refused, mode: .all, promise: nil) }
    }
}
#endif
