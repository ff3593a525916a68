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
/// The receive handler gets what has arrived and returns how many bytes it has used. The rest comes again, together
/// with what arrives next. What is written during a handler is sent in one piece when the handler returns. What the
/// system does not take at once is sent when it takes more.
///
/// When more than ``Limits/highWatermark`` bytes wait to be sent, the connection stops reading until no more than
/// ``Limits/lowWatermark`` wait: a peer that does not read is not read either, unless ``Limits/readsWhileFull`` says
/// so. A pass reads at most 64 KiB from a connection, so that a busy one does not keep others waiting.
///
/// A connection without a receive handler is read and written by tasks; see ``withStream(_:)``.
///
/// A started connection keeps itself until it is closed; you need not keep it. It closes when both sides have ended, when
/// the peer has ended and there is no ``endHandler``, and when its loop ends. A connection belongs to the loop's thread and is not `Sendable`.
public final class Connection {
    /// Called with what has arrived; returns how many bytes of it were used.
    public typealias ReceiveHandler = (Connection, Span<UInt8>) -> Int

    /// Where it was made.
    public let origin: RunLoop.Origin
    /// The modes in which the connection is served.
    public let modes: RunLoop.Modes
    /// Its limits; timeouts count from ``start()``.
    public let limits: Limits

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

    /// What it reads and writes. Once it has moved it belongs to another thread.
    package let stream: any ByteStream
    /// Whether it is closed because it has moved to another loop.
    package var hasMoved: Bool { machine.closeReason == .moved }

    /// The descriptor that is read, or written if there is none to read; -1 once it has moved to another loop. The
    /// connection owns and closes it.
    public var fileDescriptor: Int32 { hasMoved ? -1 : stream.fileDescriptor }
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
    let hasBudget: Bool
    let hasIdleTimeout: Bool
    // What every message touches opts out of run-time exclusivity checks, here, in the streams and buffers and in the
    // loop's way to a descriptor: they were 32 % of the instructions of a GET in TTLStore (4,914 to 3,332; decision 23).
    @exclusivity(unchecked) var machine: ConnectionMachine
    @exclusivity(unchecked) var receive: ReceiveHandler?
    @exclusivity(unchecked) var input: ByteBuffer?
    /// The bytes that count in the budget.
    @exclusivity(unchecked) var budgetedInput = 0
    @exclusivity(unchecked) var output: ByteBuffer?
    @exclusivity(unchecked) var timers: ConnectionTimers?
    /// The tasks that wait for the connection, if it is for tasks.
    @exclusivity(unchecked) var waits: ConnectionWaits?
    /// What the stream is watched for.
    @exclusivity(unchecked) var interest: DescriptorEvents = []
    private var hasToldOfIgnoredWrite = false
    @exclusivity(unchecked) var isOutputLost = false
    /// Takes what the connection leaves when it moves to another loop.
    @exclusivity(unchecked) var departure: ((HandedOver) -> Void)?

    /// A connection on a descriptor, which it makes non-blocking and owns from now on. Call ``start()`` when the
    /// handlers are set.
    ///
    /// - Parameters:
    ///   - descriptor: a connected stream socket, a terminal, or another descriptor that is read and written.
    ///   - loop: the loop that serves it.
    ///   - modes: the modes in which it is served.
    ///   - limits: its limits.
    ///   - receive: called with what has arrived; returns how many bytes it has used. Kept until the connection is
    ///     closed. Without it, tasks read the connection; see ``read(atMost:)``.
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
    ///   - input: what is read; `nil` for a connection that is only written.
    ///   - output: what is written; `nil` for a connection that is only read.
    ///   - loop: the loop that serves it.
    ///   - modes: the modes in which it is served.
    ///   - limits: its limits.
    ///   - receive: called with what has arrived; returns how many bytes it has used. Kept until the connection is
    ///     closed. Without it, tasks read the connection; see ``read(atMost:)``.
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
        hasBudget = limits.inputBudget != nil
        hasIdleTimeout = limits.idleTimeout != nil || limits.inputTimeout != nil
        pool = BufferPool.shared(of: loop)
        if receive == nil { waits = ConnectionWaits(loop.remote) }
    }

    /// A connection that goes on where another one has stopped.
    convenience init(
        _ handedOver: HandedOver, on loop: RunLoop, modes: RunLoop.Modes, limits: Limits, origin: RunLoop.Origin,
        receive: ReceiveHandler?
    ) {
        self.init(handedOver.stream, on: loop, modes: modes, limits: limits, origin: origin, receive: receive)
        (input, output) = (handedOver.input, handedOver.output)
        machine.inputChanged(to: input?.count ?? 0)
        if handedOver.hasPeerEnded { machine.peerEnded() }
        machine.outputChanged(to: pendingOutput)
        if handedOver.hasFinishedWriting { machine.finishWriting() }
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
        timers = ConnectionTimers(limits, origin, on: loop, modes) { [unowned self] reason in
            machine.timeOut(reason)
            settle()
        }
        if let timeout = limits.inputTimeout {
            timers?.limitInput(to: timeout) { [unowned self] in machine.wantsInput }
        }
        settle()
    }

    /// Stops reading until ``resumeReading()`` has been called as often as this. What arrives waits in the system, and
    /// then at the peer. It may be called before ``start()``. On the loop's thread.
    public func pauseReading() {
        machine.pause()
        if !machine.isReceiving { settle() }
    }

    /// Takes back one ``pauseReading()``; without one it does nothing, and `RunLoop.trace` tells. When none is left,
    /// reading goes on: the next pass offers the input that the receive handler has left unused. On the loop's thread.
    public func resumeReading() {
        guard machine.resume() else {
            loop.trace?(.ignored("\(description) was to resume reading, which was not paused"))
            return
        }
        if !machine.isReceiving { settle() }
    }

    /// Has what the receive handler leaves unused offered again, though nothing more may come: in the next pass in which
    /// the connection reads. A handler that stops in the middle calls it. An end of the stream that comes meanwhile waits. On
    /// the loop's thread.
    public func receiveAgain() {
        machine.offerAgain()
        if !machine.isReceiving { settle() }
    }

    // MARK: Writing

    /// Sends bytes. The system takes what it can at once and the rest when it can take more. Bytes that are written
    /// during a handler of this connection are sent together when the handler returns. Does nothing on a closed
    /// connection or after ``finish(within:)`` or ``finishWriting()``; `RunLoop.trace` tells once. Never blocks. On the loop's thread, O(bytes).
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
            guard !isOutputLost else { return settle() }
        }
        if output == nil { output = pool.take() }
        output!.append(rest)
        machine.outputChanged(to: output!.count)
        if !machine.isCorked { settle() }
    }

    /// Says once that what is written now goes nowhere.
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
    /// until the peer has ended its side or the peer's system has everything. It closes all the same when the peer's system
    /// has taken nothing for 30 s, or when it has everything and the peer goes on sending for 2 s. On the loop's thread.
    ///
    /// - Parameter deadline: the time that this may take. After that the connection closes even if bytes still wait.
    public func finish(within deadline: Duration? = nil) {
        if let deadline { timers?.limit(to: deadline) }
        machine.finish(.closed)
        waits?.writer.end()
        settle()
    }

    /// Ends this side of the stream and keeps reading. What waits is sent first; then the peer sees the end. If the peer
    /// has ended its side already, the connection closes. On the loop's thread.
    public func finishWriting() {
        machine.finishWriting()
        settle()
    }

    /// Closes at once; what waits to be sent is lost. On the loop's thread; harmless when repeated.
    public func close() {
        machine.close(.closed)
        settle()
    }

    /// Closes at once, and lets the peer see that the stream is broken off: its system reports `ECONNRESET` in place of an
    /// end, and discards nothing that it has already (`SO_LINGER` with a time of 0). Waiting bytes are lost, also those
    /// that the system has not sent yet, and TLS does not say goodbye. The reason of the close is ``CloseReason/closed``.
    ///
    /// Only TCP knows a reset: the peer of a pipe or a Unix socket sees an end. On the loop's thread; harmless when
    /// repeated.
    public func reset() {
        machine.reset()
        settle()
    }

    /// Closes at once, with an error as the reason, for example because the peer breaks the protocol. On the loop's
    /// thread; harmless when the connection is closed.
    public func fail(_ error: any Error & Hashable & Sendable) {
        machine.close(.failed(error))
        settle()
    }
}

@available(*, unavailable, message: "a connection belongs to its loop's thread")
extension Connection: Sendable {}
