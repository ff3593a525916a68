internal import Glibc
public import RunLoopKit

/// One end of a stream: a socket, a pipe, a terminal, or TLS above one of these, which is read and written without
/// blocking, with back-pressure.
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
/// The receive handler gets the input and returns the number of bytes that it has used. The rest comes again, together
/// with the next input. Output that a handler writes is sent in one piece when the handler returns. The kernel may not
/// accept all of it at once; the rest is sent when it accepts more.
///
/// When more than ``Limits/highWatermark`` bytes wait to be sent, the connection stops reading until no more than
/// ``Limits/lowWatermark`` wait: a peer that does not read is not read either, unless ``Limits/readsWhileFull`` says
/// so. A pass reads once from a connection, at most 256 KiB, so that a busy one does not keep others waiting.
///
/// A connection without a receive handler is read and written by tasks; see ``withStream(_:)``.
///
/// A started connection keeps itself until it is closed; you need not keep it. It closes when both sides have ended, when
/// the peer has ended and there is no ``endHandler``, and when its loop ends. A connection belongs to the loop's thread and is not `Sendable`.
public final class Connection {
    /// Called with the input; returns how many of its bytes were used.
    public typealias ReceiveHandler = (Connection, Span<UInt8>) -> Int

    /// Where it was made.
    public let origin: RunLoop.Origin
    /// The modes in which the connection is served.
    public let modes: RunLoop.Modes
    /// The connection's limits; timeouts count from ``start()``.
    ///
    /// They may be changed, for example when a client has logged in, on the loop's thread. Of timeouts that are changed,
    /// the total one still counts from ``start()``, the others from the change. A limit on input that is held counts from
    /// the next time that the receive handler returns.
    public var limits: Limits {
        didSet { limitsChanged(from: oldValue) }
    }

    /// Called once, as the last handler, when the connection is closed, for whatever reason.
    public var closeHandler: ((Connection, CloseReason) -> Void)?
    /// Called when the peer has ended its side, also after ``finishWriting()``; not after ``finish(within:)``. Without
    /// this handler the connection then finishes: it sends the waiting bytes and closes. With it, you may keep writing
    /// until ``finish(within:)`` or ``finishWriting()``, which then closes the connection, too, because both sides have
    /// ended.
    @exclusivity(unchecked) public var endHandler: ((Connection) -> Void)?
    /// Called when more bytes wait to be sent than the high watermark.
    @exclusivity(unchecked) public var fullHandler: ((Connection) -> Void)?
    /// Called when the bytes that wait to be sent have come down to the low watermark after they were above the high
    /// one.
    @exclusivity(unchecked) public var drainHandler: ((Connection) -> Void)?
    /// Called once when the TLS handshake is done, before anything is read; not after ``finish(within:)``. Never called
    /// without TLS.
    public var handshakeHandler: ((Connection) -> Void)?

    /// The stream below, which belongs to another thread once the connection has moved.
    package let stream: any ByteStream
    /// Whether it is closed because it has moved to another loop.
    package var hasMoved: Bool { machine.closeReason == .moved }

    /// A name for reports: for the bytes of a flight, for traces and stalls. They tell connections without one by their place
    /// and descriptor. On the loop's thread.
    public var name: String? {
        get { stream.name }
        set { if !hasMoved { stream.name = newValue } }
    }

    /// The descriptor that is read, or written if there is none to read; -1 once it has moved to another loop. The
    /// connection owns and closes it.
    public var fileDescriptor: Int32 { hasMoved ? -1 : stream.fileDescriptor }
    /// The address of this end; `nil` for a stream that is no socket. On the loop's thread; one system call.
    public var localAddress: Endpoint? { isOpen ? WorldSystem.of(loop).localAddress(of: fileDescriptor).known : nil }
    /// The address of the peer; `nil` for a stream that is no connected socket. On the loop's thread; one system call.
    public var peerAddress: Endpoint? { isOpen ? WorldSystem.of(loop).peerAddress(of: fileDescriptor).known : nil }
    /// Whether it is not closed yet.
    public var isOpen: Bool { !machine.isClosed }
    /// The number of bytes that have come and that the receive handler has left unused. At the end of the stream these
    /// are the beginning of something that was cut off; the close handler may still ask.
    public var unusedInput: Int { machine.unusedInput }
    /// The number of bytes of input that the program holds outside the connection, such as the parts of a message that is
    /// not complete; 0 unless set. They count for ``Limits/maximumInput`` and ``Limits/inputBudget`` as ``unusedInput``
    /// does: set them in the receive handler, which is when they change. On the loop's thread.
    @exclusivity(unchecked) public var heldInput = 0
    /// The number of bytes that wait to be sent.
    public var pendingOutput: Int { output?.count ?? 0 }

    let loop: RunLoop
    let pool: BufferPool
    @exclusivity(unchecked) private(set) var hasBudget: Bool
    @exclusivity(unchecked) private(set) var hasIdleTimeout: Bool
    // Properties that every message touches opt out of run-time exclusivity checks, as they do in streams, in buffers and
    // in the loop's way to a descriptor. The checks were 32 % of the instructions of a GET in TTLStore (4,914 to 3,332; decision 23).
    @exclusivity(unchecked) var machine: ConnectionMachine
    @exclusivity(unchecked) var receive: ReceiveHandler?
    @exclusivity(unchecked) var input: ByteBuffer?
    /// The bytes that count in the budget.
    @exclusivity(unchecked) var budgetedInput = 0
    @exclusivity(unchecked) var output: ByteBuffer?
    /// The buffer whose bytes the receive handler has. It becomes the output if the handler writes all of them.
    // Uncounted: the reader keeps it for as long.
    @exclusivity(unchecked) unowned(unsafe) var offered: ByteBuffer?
    @exclusivity(unchecked) var timers: ConnectionTimers?
    /// The tasks that wait for the connection, if it is for tasks.
    @exclusivity(unchecked) var waits: ConnectionWaits?
    /// The events for which the stream is watched.
    @exclusivity(unchecked) var interest: DescriptorEvents = []
    private var hasToldOfIgnoredWrite = false
    @exclusivity(unchecked) var isOutputLost = false
    /// Whether the last read brought so much that there may be more.
    @exclusivity(unchecked) var isStreaming = false
    /// The blocks that wait for output to be sent; `nil` for none.
    @exclusivity(unchecked) var notices: SentNotices?
    /// Receives the stream and the buffers when the connection moves to another loop.
    @exclusivity(unchecked) var departure: ((HandedOver) -> Void)?

    /// A connection on a descriptor, which it makes non-blocking and owns from now on. Call ``start()`` when the
    /// handlers are set.
    ///
    /// - Parameters:
    ///   - descriptor: a connected stream socket, a terminal, or another descriptor that is read and written.
    ///   - loop: the loop that serves it.
    ///   - modes: the modes in which it is served.
    ///   - limits: its limits.
    ///   - receive: called with the input; returns how many bytes it has used. Kept until the connection is closed.
    ///     Without it, tasks read the connection; see ``read(atMost:)``.
    public convenience init(
        adopting descriptor: Int32, on loop: RunLoop, modes: RunLoop.Modes = .common, limits: Limits = Limits(),
        receive: ReceiveHandler? = nil, file: StaticString = #fileID, line: UInt32 = #line
    ) {
        self.init(
            DescriptorStream(descriptor, on: loop), on: loop, modes: modes, limits: limits,
            origin: RunLoop.Origin(file: file, line: line), receive: receive)
    }

    /// A connection that is read from one descriptor and written to another, such as the ends of two pipes. It makes
    /// them non-blocking and owns them from now on.
    ///
    /// - Parameters:
    ///   - input: the descriptor to read; `nil` for a connection that is only written.
    ///   - output: the descriptor to write; `nil` for a connection that is only read.
    ///   - loop: the loop that serves it.
    ///   - modes: the modes in which it is served.
    ///   - limits: its limits.
    ///   - receive: called with the input; returns how many bytes it has used. Kept until the connection is closed.
    ///     Without it, tasks read the connection; see ``read(atMost:)``.
    public convenience init(
        adoptingInput input: Int32?, output: Int32?, on loop: RunLoop, modes: RunLoop.Modes = .common,
        limits: Limits = Limits(), receive: ReceiveHandler? = nil, file: StaticString = #fileID,
        line: UInt32 = #line
    ) {
        require(input != nil || output != nil, "a connection has a descriptor to read or one to write")
        self.init(
            DescriptorStream(input: input ?? -1, output: output ?? -1, on: loop), on: loop, modes: modes,
            limits: limits,
            origin: RunLoop.Origin(file: file, line: line), receive: receive)
    }

    /// A connection on a stream, made on behalf of other code, with that code's place.
    package init(
        _ stream: any ByteStream, on loop: RunLoop, modes: RunLoop.Modes, limits: Limits, origin: RunLoop.Origin,
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
        if receive == nil { waits = ConnectionWaits(loop.remote) }
    }

    deinit {
        guard machine.isNew else { return }
        loop.trace?(.ignored("\(description) was let go without a start"))
        stream.close(.incomplete)
    }

    var description: String { "the connection on descriptor \(fileDescriptor) (\(origin))" }

    /// Begins to read and to count timeouts. Does nothing on a connection that is closed already. Call it once, on the
    /// loop's thread.
    ///
    /// - Throws: ``/RunLoopKit/DescriptorError`` if the descriptor cannot be watched; the connection is closed then.
    public func start() throws(DescriptorError) {
        guard isOpen else { return }
        require(machine.isNew, "a connection is started once")
        machine.start()
        if stream.isOpen { machine.streamOpened() }
        stream.owner = self
        interest = machine.interest
        do {
            try stream.open(on: loop, modes: modes, origin: origin, interest: interest)
        } catch {
            end(.failed(SystemError("watch the connection", errno: EBADF)))
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

    /// Stops reading until ``resumeReading()`` has been called as often as this. Input waits in the kernel, and then at
    /// the peer. It may be called before ``start()``. On the loop's thread.
    public func pauseReading() {
        update { machine.pause() }
    }

    /// Takes back one ``pauseReading()``; without one it does nothing, and `RunLoop.trace` tells. When none is left,
    /// reading continues: the next pass offers the input that the receive handler has left unused. On the loop's thread.
    public func resumeReading() {
        update {
            if !machine.resume() {
                loop.trace?(.ignored("\(description) was to resume reading, which was not paused"))
            }
        }
    }

    /// Offers unused input again, even if nothing more arrives: in the next pass in which the connection reads. A receive
    /// handler that stops in the middle calls it. An end of the stream that comes meanwhile waits. On the loop's thread.
    public func receiveAgain() {
        update { machine.offerAgain() }
    }

    // MARK: Writing

    /// Sends bytes, at once or, if the kernel does not accept all of them, when it accepts more. Bytes that are written
    /// during a handler of this connection are sent together when the handler returns. Does nothing on a closed
    /// connection or after ``finish(within:)`` or ``finishWriting()``; `RunLoop.trace` tells once. Never blocks. On the
    /// loop's thread, O(bytes).
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
        update { machine.outputChanged(to: output!.count) }
    }

    /// Copies the output from the buffer that the receive handler has, which must not change under it.
    func keepOffered() {
        let kept = pool.take()
        kept.append(output!.bytes)
        output = kept
    }

    /// Sends pieces of bytes, one behind the other; see ``write(_:)-(Span<UInt8>)``. Outside of the handlers of this
    /// connection, the bytes that the system accepts at once are not copied, and up to 16 pieces take one system call.
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
        loop.trace?(.ignored("\(description) was written to after it had been finished or closed"))
    }

    // MARK: Ending

    /// Stops reading, sends the waiting bytes, and closes. No handler but the close handler is called any more; input that
    /// still arrives is discarded.
    ///
    /// Written bytes are not lost as long as the peer reads: the peer sees the end of the stream, and the connection stays
    /// until the peer has ended its side or the peer's kernel has everything. It closes all the same when that kernel has
    /// accepted nothing for 30 s, or has everything and the peer keeps sending for 30 s. On the loop's thread.
    ///
    /// - Parameter deadline: the time that this may take. After that the connection closes even if bytes still wait.
    public func finish(within deadline: Duration? = nil) {
        update {
            if let deadline { timers?.limit(to: deadline) }
            machine.finish(.closed)
            waits?.writer.end()
        }
    }

    /// Ends this side of the stream and keeps reading. Waiting output is sent first; then the peer sees the end. If the
    /// peer has ended its side already, the connection closes. On the loop's thread.
    public func finishWriting() {
        update { machine.finishWriting() }
    }

    /// Closes at once; waiting output is lost. On the loop's thread; harmless when repeated.
    public func close() {
        update { machine.close(.closed) }
    }

    /// Closes at once, and lets the peer see that the stream is broken off: its system reports `ECONNRESET` in place of an
    /// end, and discards nothing that it has already (`SO_LINGER` with a time of 0). Waiting bytes are lost, also those
    /// that the system has not sent yet, and TLS does not say goodbye. The reason of the close is ``CloseReason/closed``.
    ///
    /// Only TCP knows a reset: the peer of a pipe or a Unix socket sees an end. On the loop's thread; harmless when
    /// repeated.
    public func reset() {
        update { machine.reset() }
    }

    /// Closes at once, with an error as the reason, for example because the peer breaks the protocol. On the loop's
    /// thread; harmless when the connection is closed.
    public func fail(_ error: any Error & Hashable & Sendable) {
        update { machine.close(.failed(error)) }
    }
}

@available(*, unavailable, message: "a connection belongs to its loop's thread")
extension Connection: Sendable {}
