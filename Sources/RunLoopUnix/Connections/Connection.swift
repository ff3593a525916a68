internal import Glibc
@_spi(Ports) public import RunLoopKit

/// One end of a stream, read and written without blocking and with back-pressure: a socket, a pipe, a terminal, or TLS
/// over one of these.
///
/// ```swift
/// let connection = Connection(adopting: descriptor, on: loop) { connection, bytes in
///     connection.write(bytes)  // an echo
///     return bytes.count
/// }
/// connection.closeHandler = { _, reason in print("closed:", reason) }
/// try connection.start()
/// ```
///
/// The receive handler receives the input and returns the number of bytes that it has used; the rest is offered again,
/// together with the next input. Output that a handler writes is sent in one piece when the handler returns. If the
/// kernel does not accept all of it at once, the rest is sent when it accepts more.
///
/// When more than ``Limits/highWatermark`` bytes wait to be sent, the connection stops reading until no more than
/// ``Limits/lowWatermark`` wait, so that it does not read from a peer that does not read, unless
/// ``Limits/readsWhileFull`` is `true`. A pass reads once from a connection, at most 256 KiB, so that a busy connection
/// does not keep others waiting.
///
/// Tasks read and write a connection without a receive handler; see ``withStream(_:)``.
///
/// A started connection keeps itself alive until it is closed, so you need not keep a reference. It closes when both
/// sides have ended, when the peer has ended and there is no ``endHandler``, and when its loop ends. A connection
/// belongs to the loop's thread and is not `Sendable`.
public final class Connection {
    /// A closure that receives the input and returns the number of bytes used.
    public typealias ReceiveHandler = (Connection, Span<UInt8>) -> Int

    /// The place where the connection was made.
    public let origin: RunLoop.Origin
    /// The modes in which the connection is served.
    public let modes: RunLoop.Modes
    /// The connection's limits; timeouts count from ``start()``.
    ///
    /// Change them on the loop's thread, for example when a client has logged in. A changed total timeout still counts
    /// from ``start()``, the others from the change. A changed limit on held input applies when the receive handler
    /// next returns.
    public var limits: Limits {
        didSet { limitsChanged(from: oldValue) }
    }

    /// A closure that receives the input and returns how many of its bytes it has used.
    ///
    /// Set it before ``start()``, or in the closure of a ``Server``; a connection without it is for tasks. It may be
    /// replaced later, for example for another protocol, but not removed; ``receiveAgain()`` offers the unused input to
    /// the new one. Released when the connection is closed. On the loop's thread.
    public var receiveHandler: ReceiveHandler? {
        get { receive }
        set {
            guard isOpen else { return }
            require(
                machine.isNew || (newValue != nil && (!machine.isForTasks || waits == nil)),
                "a connection that tasks use has no receive handler, and one with a handler keeps one")
            receive = newValue
            machine.isForTasks = newValue == nil
        }
    }
    /// Called once, as the last handler, when the connection is closed for any reason.
    public var closeHandler: ((Connection, CloseReason) -> Void)?
    /// Called when the peer has ended its side, even after ``finishWriting()``, or when the connection's ``Server`` shuts
    /// down and nothing more is read; not after ``finish(within:)``. Without this handler, the connection then sends the
    /// waiting bytes and closes. With it, you may keep writing until ``finish(within:)`` or ``finishWriting()``, either of
    /// which then closes the connection, because both sides have ended.
    @exclusivity(unchecked) public var endHandler: ((Connection) -> Void)?
    /// Called when the bytes waiting to be sent exceed the high watermark.
    @exclusivity(unchecked) public var fullHandler: ((Connection) -> Void)?
    /// Called when the bytes waiting to be sent have fallen to the low watermark after exceeding the high one.
    @exclusivity(unchecked) public var drainHandler: ((Connection) -> Void)?
    /// Called once, only with TLS, when the handshake is done, before anything is read; not after ``finish(within:)``.
    public var handshakeHandler: ((Connection) -> Void)?

    /// The stream below, which belongs to another thread once the connection has moved.
    @_spi(Ports) public let stream: any ByteStream
    /// True if the connection is closed because it has moved to another loop.
    @_spi(Ports) public var hasMoved: Bool { machine.closeReason == .moved }

    /// The name of the connection in reports: flights, traces and stalls, which otherwise identify it by its place and
    /// descriptor. Use it on the loop's thread.
    public var name: String? {
        get { stream.name }
        set { if !hasMoved { stream.name = newValue } }
    }

    /// The descriptor that the connection reads, or writes if there is none to read; -1 once it has moved to another
    /// loop. The connection owns and closes it.
    public var fileDescriptor: Int32 { hasMoved ? -1 : stream.fileDescriptor }
    /// The address of this end; `nil` for a stream that is not a socket. Use it on the loop's thread; costs one system
    /// call.
    public var localAddress: Endpoint? { isOpen ? WorldSystem.of(loop).localAddress(of: fileDescriptor).known : nil }
    /// The address of the peer; `nil` for a stream that is not a connected socket. Use it on the loop's thread; costs
    /// one system call.
    public var peerAddress: Endpoint? { isOpen ? WorldSystem.of(loop).peerAddress(of: fileDescriptor).known : nil }
    /// A Boolean value that indicates whether the connection is open.
    public var isOpen: Bool { !machine.isClosed }
    /// The number of received bytes that the receive handler has left unused. At the end of the stream, they are an
    /// incomplete message. The value is still available in the close handler.
    public var unusedInput: Int { machine.unusedInput }
    /// The number of bytes of input that the program holds outside the connection, such as the parts of an incomplete
    /// message; by default 0. It counts towards ``Limits/maximumInput`` and ``Limits/inputBudget`` as ``unusedInput``
    /// does. Set it in the receive handler, on the loop's thread.
    @exclusivity(unchecked) public var heldInput = 0
    /// The number of bytes waiting to be sent.
    public var pendingOutput: Int { output?.count ?? 0 }

    let loop: RunLoop
    let pool: BufferPool
    private(set) var hasBudget: Bool
    private(set) var hasIdleTimeout: Bool
    // Properties used for every message opt out of run-time exclusivity checks, unless the compiler proves what these
    // would check. The checks were 32 % of the instructions of a GET in TTLStore (4,914 to 3,332; decision 23).
    @exclusivity(unchecked) var machine: ConnectionMachine
    var receive: ReceiveHandler?
    var input: ByteBuffer?
    /// The number of bytes counted in the budget.
    var budgetedInput = 0
    var output: ByteBuffer?
    /// The buffer that the receive handler is reading. It becomes the output if the handler writes all of it.
    // Unretained, because the reader keeps the buffer meanwhile.
    unowned(unsafe) var offered: ByteBuffer?
    @exclusivity(unchecked) var timers: ConnectionTimers?
    /// The server that keeps the connection, and the connection's place there.
    var keeper: (any ConnectionKeeper)?
    var place = 0
    /// The waits of tasks for the connection, once a task has asked or input has come.
    var waits: ConnectionWaits?
    /// The events for which the stream is watched.
    var interest: DescriptorEvents = []
    private var hasToldOfIgnoredWrite = false
    var isOutputLost = false
    /// True if the last read returned so much that more may follow.
    var isStreaming = false
    /// The blocks that wait for output to be sent; `nil` for none.
    @exclusivity(unchecked) var notices: SentNotices?
    /// Receives the stream and the buffers when the connection moves to another loop.
    var departure: ((HandedOver) -> Void)?

    /// Creates a connection on a descriptor, which it makes non-blocking and then owns. Call ``start()`` after setting
    /// the handlers.
    ///
    /// - Parameters:
    ///   - descriptor: a connected stream socket, a terminal, or another descriptor that is read and written.
    ///   - loop: the loop that serves the connection.
    ///   - modes: the modes in which the connection is served.
    ///   - limits: the limits of the connection.
    ///   - receive: called with the input; returns how many bytes it has used. Kept until the connection is closed.
    ///     Without a handler, tasks read the connection; see ``read(atMost:)``.
    public convenience init(
        adopting descriptor: Int32, on loop: RunLoop, inModes modes: RunLoop.Modes = .common, limits: Limits = Limits(),
        receive: ReceiveHandler? = nil, file: StaticString = #fileID, line: UInt32 = #line
    ) {
        self.init(
            loop.makeStream(reading: descriptor, writing: descriptor), on: loop, inModes: modes, limits: limits,
            origin: RunLoop.Origin(file: file, line: line), receive: receive)
    }

    /// Creates a connection that reads one descriptor and writes another, such as the ends of two pipes, which it makes
    /// non-blocking and then owns.
    ///
    /// - Parameters:
    ///   - input: the descriptor to read; `nil` for a connection that only writes.
    ///   - output: the descriptor to write; `nil` for a connection that only reads.
    ///   - loop: the loop that serves the connection.
    ///   - modes: the modes in which the connection is served.
    ///   - limits: the limits of the connection.
    ///   - receive: called with the input; returns how many bytes it has used. Kept until the connection is closed.
    ///     Without a handler, tasks read the connection; see ``read(atMost:)``.
    public convenience init(
        adoptingInput input: Int32?, output: Int32?, on loop: RunLoop, inModes modes: RunLoop.Modes = .common,
        limits: Limits = Limits(), receive: ReceiveHandler? = nil, file: StaticString = #fileID,
        line: UInt32 = #line
    ) {
        require(input != nil || output != nil, "a connection has a descriptor to read or one to write")
        self.init(
            loop.makeStream(reading: input ?? -1, writing: output ?? -1), on: loop, inModes: modes,
            limits: limits,
            origin: RunLoop.Origin(file: file, line: line), receive: receive)
    }

    /// Creates a connection on a stream, with the place of the code that requested it.
    @_spi(Ports) public init(
        _ stream: any ByteStream, on loop: RunLoop, inModes modes: RunLoop.Modes, limits: Limits,
        origin: RunLoop.Origin,
        receive: ReceiveHandler?
    ) {
        self.stream = stream
        self.loop = loop
        self.modes = modes
        self.limits = limits
        self.receive = receive
        self.origin = origin
        machine = ConnectionMachine(limits, isForTasks: receive == nil)
        (hasBudget, hasIdleTimeout) = (limits.inputBudget != nil, limits.countsIdleTime)
        pool = BufferPool.shared(of: loop)
    }

    deinit {
        guard machine.isNew else { return }
        loop.emit(.ignored("\(description) was released and had never been started"))
        stream.close(.incomplete)
    }

    var description: String { "the connection on descriptor \(fileDescriptor) (\(origin))" }

    /// Starts reading and counting timeouts. Has no effect on a closed connection. Call it once, on the loop's thread.
    ///
    /// - Throws: ``/RunLoopKit/DescriptorError`` if the descriptor cannot be watched. The connection is then closed, and
    ///   its close handler was called with ``CloseReason/failed(_:)``.
    public func start() throws(DescriptorError) {
        guard isOpen else { return }
        require(machine.isNew, "a connection is started once")
        machine.start()
        if stream.isOpen { machine.streamOpened() }
        stream.owner = self
        interest = machine.interest
        do {
            try stream.open(on: loop, inModes: modes, origin: origin, interest: interest)
        } catch {
            end(.failed(SystemError("watch the connection", errno: error.systemErrno)))
            throw error
        }
        update {
            timers = ConnectionTimers(origin, on: loop, modes) { [unowned self] reason in
                update { machine.timeOut(reason) }
            }
            setTimers()
        }
    }

    private func setTimers() {
        timers?.set(limits) { [unowned self] in machine.wantsInput }
    }

    private func limitsChanged(from old: Limits) {
        guard isOpen else { return }
        (hasBudget, hasIdleTimeout) = (limits.inputBudget != nil, limits.countsIdleTime)
        update {
            machine.setLimits(limits)
            if old.inputBudget !== limits.inputBudget {
                _ = old.inputBudget?.change(by: -budgetedInput)
                budgetedInput = 0
                count(unusedInput + heldInput)
            }
            if limits.timeouts != old.timeouts { setTimers() }
        }
    }

    // MARK: Reading

    /// Stops reading until ``resumeReading()`` has been called once for each call of this method. Input waits in the
    /// kernel, and then at the peer. Call it on the loop's thread, even before ``start()``.
    public func pauseReading() {
        update { machine.pause() }
    }

    /// Undoes one call of ``pauseReading()``. Without one, has no effect and is reported to `RunLoop.trace`. After the
    /// last, reading continues, and the next pass offers unused input. Call it on the loop's thread.
    public func resumeReading() {
        update {
            if !machine.resume() {
                loop.emit(.ignored("\(description) was asked to resume reading, which was not paused"))
            }
        }
    }

    /// Offers unused input again in the next pass in which the connection reads, even if nothing more arrives. A
    /// receive handler that stops in the middle of its input calls it. An end of the stream waits meanwhile. Call it on
    /// the loop's thread.
    public func receiveAgain() {
        update { machine.offerAgain() }
    }

    // MARK: Writing

    /// Sends bytes, at once or when the kernel accepts them, without blocking. Bytes written during a handler of this
    /// connection are sent together when the handler returns. Has no effect on a closed connection or after
    /// ``finish(within:)`` or ``finishWriting()``, which is reported to `RunLoop.trace` once. Call it on the loop's
    /// thread. O(bytes).
    public func write(_ bytes: Span<UInt8>) {
        bytes.withUnsafeBytes { write($0) }
    }

    /// Sends bytes; see ``write(_:)-(Span<UInt8>)``.
    public func write(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { write($0) }
    }

    /// Sends a text as UTF-8; see ``write(_:)-(Span<UInt8>)``.
    public func write(_ text: String) {
        var text = text
        text.withUTF8 { write(UnsafeRawBufferPointer($0)) }
    }

    func write(_ bytes: UnsafeRawBufferPointer) {
        guard !bytes.isEmpty else { return }
        guard machine.mayWrite else { return tellOfIgnoredWrite() }
        var rest = bytes
        if machine.mayWriteThrough {
            rest = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(transmit(bytes)))
            guard !rest.isEmpty else { return }
            guard !isOutputLost else { return update { machine.outputChanged(to: 0) } }
        }
        if output == nil, let offered, offered.holdsJust(rest) {
            output = offered
        } else {
            if output == nil { output = pool.take() } else if output === offered { keepOffered() }
            output!.append(rest)
        }
        assert(!output!.isEmpty, "output that waits is empty")
        update { machine.outputChanged(to: output!.count) }
    }

    /// Copies the output from the buffer that the receive handler is reading, which must not change.
    func keepOffered() {
        assert(output === offered, "the output is not in the buffer that is being offered")
        let kept = pool.take()
        kept.append(output!.bytes)
        output = kept
    }

    /// Sends consecutive pieces of bytes; see ``write(_:)-(Span<UInt8>)``. Outside this connection's handlers, bytes
    /// that the system accepts at once are not copied, and up to 16 pieces take one system call.
    public func write(gathering pieces: [[UInt8]]) {
        var rest = pieces[...]
        while machine.mayWriteThrough, !rest.isEmpty {
            let first = rest.prefix(Self.mostPieces)
            rest = rest.dropFirst(first.count)
            let count = transmit(gathering: first)
            guard !isOutputLost else { return update { machine.outputChanged(to: 0) } }
            guard count < first.reduce(0, { $0 + $1.count }) else { continue }
            var sent = count
            for piece in first {
                let skipped = min(sent, piece.count)
                sent -= skipped
                piece.withUnsafeBytes { write(UnsafeRawBufferPointer(rebasing: $0.dropFirst(skipped))) }
            }
        }
        for piece in rest { write(piece) }
    }

    private static let mostPieces = 16

    private func tellOfIgnoredWrite() {
        guard !hasToldOfIgnoredWrite else { return }
        hasToldOfIgnoredWrite = true
        loop.emit(.ignored("\(description) was written to after it had been finished or closed"))
    }

    // MARK: Ending

    /// Stops reading, sends the waiting bytes, and closes. From now on, only the close handler is called, and arriving
    /// input is discarded.
    ///
    /// Written bytes are not lost while the peer reads: the peer sees the end of the stream, and the connection stays
    /// open until the peer has ended its side or the peer's kernel has everything. The connection also closes when that
    /// kernel has accepted nothing for 30 s, or has everything and the peer keeps sending for 30 s. Call it on the
    /// loop's thread.
    ///
    /// - Parameter deadline: the time that this may take, after which the connection closes even if bytes are waiting.
    public func finish(within deadline: Duration? = nil) {
        update {
            if let deadline { timers?.limit(to: deadline) }
            machine.finish(.closed)
            waits?.writer.end()
        }
    }

    /// Ends this side of the stream and keeps reading. Waiting output is sent before the peer sees the end. If the peer
    /// has already ended its side, the connection closes. Call it on the loop's thread.
    public func finishWriting() {
        update { machine.finishWriting() }
    }

    /// Closes at once; waiting output is lost. Call it on the loop's thread; repeated calls have no effect.
    public func close() {
        update { machine.close(.closed) }
    }

    /// Closes at once with a reset: the peer's system reports `ECONNRESET` instead of an end, and discards no bytes
    /// that it has (`SO_LINGER` with a time of 0). Waiting bytes are lost, even those that the system has not yet sent,
    /// and TLS sends no closing alert. The close reason is ``CloseReason/closed``.
    ///
    /// Only TCP has a reset; the peer of a pipe or a Unix socket sees an end. Call it on the loop's thread; repeated
    /// calls have no effect.
    public func reset() {
        update { machine.reset() }
    }

    /// Closes at once with an error as the reason, for example because the peer violates the protocol. Call it on the
    /// loop's thread; has no effect on a closed connection.
    public func fail(_ error: any Error & Hashable & Sendable) {
        update { machine.close(.failed(error)) }
    }
}

@available(*, unavailable, message: "a connection belongs to its loop's thread")
extension Connection: Sendable {}
