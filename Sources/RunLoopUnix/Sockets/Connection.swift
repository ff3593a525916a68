internal import Glibc
public import RunLoopKit

/// One end of a stream: a connected TCP or Unix socket that is read and written without blocking, with back-pressure.
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
/// ``Limits/lowWatermark`` wait: a peer that does not read is not read either. A pass reads at most 64 KiB from a
/// connection, so that a busy one does not keep others waiting.
///
/// A started connection keeps itself until it is closed, by the handlers of its sources; you need not keep it. Close it
/// before its loop ends: the end of a loop lets a connection go without a call of ``closeHandler``. A connection
/// belongs to the loop's thread and is not `Sendable`.
public final class Connection {
    /// Called with what has arrived; returns how many bytes of it were used.
    public typealias ReceiveHandler = (Connection, Span<UInt8>) -> Int

    /// Where it was made.
    public let origin: RunLoop.Origin

    /// The descriptor. The connection owns and closes it.
    public let fileDescriptor: Int32
    /// The modes in which the connection is served.
    public let modes: RunLoop.Modes
    /// Its limits; timeouts count from ``start()``.
    public let limits: Limits

    /// Called once, as the last handler, when the connection is closed, for whatever reason.
    public var closeHandler: ((Connection, CloseReason) -> Void)?
    /// Called when the peer has ended its side. Without this handler the connection then finishes: it sends what waits
    /// and closes. With it, you may keep writing until ``finish(within:)``.
    public var endHandler: ((Connection) -> Void)?
    /// Called when the bytes that wait to be sent have come down to the low watermark after they were above the high
    /// one.
    public var drainHandler: ((Connection) -> Void)?
    /// Called once when the TLS handshake is done, before anything is read. Never called without TLS.
    public var handshakeHandler: ((Connection) -> Void)?

    /// What lies between the connection and its socket; `nil` if it reads and writes the socket itself.
    package let transport: (any Transport)?

    /// Whether it is not closed yet.
    public var isOpen: Bool { state != .closed }
    /// The number of bytes that wait to be sent.
    public var pendingOutput: Int { output?.count ?? 0 }

    let loop: RunLoop
    private let pool: BufferPool
    // What every message touches opts out of run-time exclusivity checks, here, in the buffers and in the loop's way to a
    // descriptor: they were 32 % of the instructions of a GET in TTLStore (4,914 to 3,332; decision 23).
    @exclusivity(unchecked) private var receive: ReceiveHandler?
    private var reader: DescriptorSource?
    @exclusivity(unchecked) private var writer: DescriptorSource?
    @exclusivity(unchecked) private var input: ByteBuffer?
    @exclusivity(unchecked) private var output: ByteBuffer?
    @exclusivity(unchecked) var timers: ConnectionTimers?

    enum State {
        case new, open
        /// Nothing is read any more; the connection closes when everything is sent.
        case finishing
        /// Everything is sent through a transport, and the peer has a moment to end its side.
        case lingering
        case closed
    }
    @exclusivity(unchecked) var state = State.new
    /// Writing waits until a handler has returned, or until a handshake is done.
    @exclusivity(unchecked) var isCorked = false
    private var isPausedByUser = false
    @exclusivity(unchecked) private var isPausedByOutput = false
    private var hasEnded = false
    @exclusivity(unchecked) private var endsAfterOutput = false
    @exclusivity(unchecked) private var hasEndedOutput = false
    @exclusivity(unchecked) private var isReading = false
    @exclusivity(unchecked) private var isAwaitingRoom = false
    @exclusivity(unchecked) var isHandshaking = false
    @exclusivity(unchecked) var isReceiving = false
    /// Has the next pass read what the transport holds.
    @exclusivity(unchecked) var heldInput: CustomSource?
    @exclusivity(unchecked) var lastPassOfHeldInput = -1

    /// A connection on a descriptor, which it makes non-blocking and owns from now on. Call ``start()`` when the
    /// handlers are set.
    ///
    /// - Parameters:
    ///   - descriptor: a connected stream socket.
    ///   - loop: the loop that serves it.
    ///   - modes: the modes in which it is served.
    ///   - limits: its limits.
    ///   - receive: called with what has arrived; returns how many bytes it has used. Kept until the connection is
    ///     closed.
    public convenience init(
        adopting descriptor: Int32, on loop: RunLoop, modes: RunLoop.Modes = .common, limits: Limits = Limits(),
        receive: @escaping ReceiveHandler, file: StaticString = #fileID, line: UInt32 = #line
    ) {
        self.init(
            adopting: descriptor, on: loop, modes: modes, limits: limits, transport: nil, receive: receive,
            origin: RunLoop.Origin(file: file, line: line))
    }

    /// A connection that reads and writes through a transport.
    package init(
        adopting descriptor: Int32, on loop: RunLoop, modes: RunLoop.Modes, limits: Limits,
        transport: (any Transport)?, receive: @escaping ReceiveHandler, origin: RunLoop.Origin
    ) {
        fileDescriptor = descriptor
        self.loop = loop
        self.modes = modes
        self.limits = limits
        self.transport = transport
        self.receive = receive
        self.origin = origin
        pool = BufferPool.shared(of: loop)
    }

    deinit {
        if state == .new { Glibc.close(fileDescriptor) }
    }

    /// Begins to read and to count timeouts. Does nothing on a connection that is closed already. Call it once, on the
    /// loop's thread.
    ///
    /// - Throws: ``/RunLoopKit/DescriptorError`` if the descriptor cannot be watched; the connection is closed then.
    public func start() throws(DescriptorError) {
        guard state != .closed else { return }
        require(state == .new, "a connection is started once")
        setNonBlocking(fileDescriptor)
        let reader = DescriptorSource(fileDescriptor: fileDescriptor, events: .readable, origin: origin) {
            [self] _, _ in
            if let transport { serve(transport, .readable) } else { readSome() }
        }
        reader.name = "connection"
        do {
            try loop.add(reader, forMode: modes)
        } catch {
            close(.failed(SystemError("watch the connection", errno: EBADF)))
            throw error
        }
        self.reader = reader
        isReading = true
        state = .open
        timers = ConnectionTimers(limits, origin, on: loop, modes) { [unowned self] reason in
            close(state == .lingering ? finishReason : reason)
        }
        if let transport { return beginHandshake(transport) }
        if output != nil { flush() }
    }

    // MARK: Reading

    func readSome() {
        timers?.noteActivity()
        var status: Int
        if state == .lingering {
            status = discardInput()
        } else if let input, !input.isEmpty {
            status = input.fill(room: 16 * 1024, read)
            if status > 0 { offer(input) }
        } else {
            let scratch = pool.take()
            status = scratch.fill(room: 1, read)
            if status > 0 { offer(scratch) }
            if !scratch.isEmpty, isOpen { keep(scratch.bytes) }
            pool.put(scratch)
        }
        if status == 0 {
            peerEnded()
        } else if status < 0, -status != Int(EAGAIN), -status != Int(EINTR) {
            close(failure("read from the connection", status))
        }
    }

    /// - Returns: how many bytes were read, 0 at the end, or the negative number of an error.
    private func read(into room: UnsafeMutableRawBufferPointer) -> Int {
        if let transport { return transport.read(into: room) }
        let count = recv(fileDescriptor, room.baseAddress, min(room.count, BufferPool.size), 0)
        return count < 0 ? -Int(errno) : count
    }

    /// Gives the handler what is there, and removes what it has used.
    private func offer(_ buffer: ByteBuffer) {
        guard let receive else { return }
        let used = corked { receive(self, Span(_unsafeBytes: buffer.bytes)) }
        require(
            used >= 0 && used <= buffer.count,
            "a receive handler returns how many of the bytes it has used, not \(used) of \(buffer.count)")
        buffer.discard(used)
        if buffer === input, buffer.isEmpty { input = nil }
        if buffer.count > limits.maximumInput { close(.inputLimit) }
    }

    private func discardInput() -> Int {
        let scratch = pool.take()
        defer { pool.put(scratch) }
        return scratch.fill(room: 1, read)
    }

    private func keep(_ bytes: UnsafeRawBufferPointer) {
        let kept = ByteBuffer(capacity: max(4096, bytes.count))
        kept.append(bytes)
        input = kept
    }

    private func peerEnded() {
        guard !hasEnded, isOpen else { return }
        if state == .lingering { return close(finishReason) }
        hasEnded = true
        updateReading()
        guard let endHandler else { return finish(.ended) }
        corked { endHandler(self) }
    }

    /// Stops reading until ``resumeReading()``. What arrives waits in the system, and then at the peer. On the loop's
    /// thread.
    public func pauseReading() {
        isPausedByUser = true
        updateReading()
    }

    /// Reads again. The next pass offers what the receive handler has left unused. On the loop's thread.
    public func resumeReading() {
        guard isPausedByUser else { return }
        isPausedByUser = false
        updateReading()
        guard input?.isEmpty == false else { return }
        loop.perform(inModes: modes) { [weak self] in
            guard let self, !isPausedByUser, isOpen, let input else { return }
            offer(input)
        }
    }

    /// Whether what arrives is to be read now.
    var wantsInput: Bool {
        (state == .open && !hasEnded && !isPausedByUser && !isPausedByOutput) || state == .lingering
    }

    /// Has the descriptor watched for reading exactly while something is to be read.
    func updateReading() {
        guard let reader, reader.isValid else { return }
        if let transport { scheduleReading(transport) }
        let reads = if let transport { watches(transport, for: .readable) } else { wantsInput }
        guard reads != isReading else { return }
        isReading = reads
        if reads {
            do {
                try loop.add(reader, forMode: modes)
            } catch {
                close(.failed(SystemError("watch the connection", errno: EBADF)))
            }
        } else {
            loop.remove(reader, fromMode: modes)
        }
    }

    // MARK: Writing

    /// Sends bytes. The system takes what it can at once and the rest when it can take more. Bytes that are written
    /// during a handler of this connection are sent together when the handler returns. Does nothing on a closed
    /// connection or after ``finish(within:)``. Never blocks. On the loop's thread, O(bytes).
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

    private func write(_ bytes: UnsafeRawBufferPointer) {
        guard state == .open || state == .new, !endsAfterOutput, !bytes.isEmpty else { return }
        var rest = bytes
        if !isCorked, state == .open, output == nil {
            // Nothing waits, so the bytes are sent from where they are.
            let sent = transmit(bytes)
            if sent < 0, -sent != Int(EAGAIN), -sent != Int(EINTR) {
                return close(failure("write to the connection", sent))
            }
            timers?.noteActivity()
            rest = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(max(0, sent)))
            guard !rest.isEmpty else { return }
        }
        if output == nil { output = pool.take() }
        output!.append(rest)
        if !isCorked { checkOutput() }
    }

    /// - Returns: how many bytes the system took, or the negative number of an error.
    private func transmit(_ bytes: UnsafeRawBufferPointer) -> Int {
        if let transport { return transport.write(bytes) }
        let sent = send(fileDescriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        return sent < 0 ? -Int(errno) : sent
    }

    /// Calls a handler, and sends what it has written.
    private func corked<Result>(_ handler: () -> Result) -> Result {
        guard !isCorked else { return handler() }
        isCorked = true
        let result = handler()
        isCorked = false
        flush()
        return result
    }

    func flush() {
        guard state == .open || state == .finishing else { return }
        if let output, !output.isEmpty {
            let sent = transmit(output.bytes)
            if sent < 0, -sent != Int(EAGAIN), -sent != Int(EINTR) {
                return close(failure("write to the connection", sent))
            }
            if sent > 0 {
                timers?.noteActivity()
                output.discard(sent)
            }
        }
        checkOutput()
    }

    /// Acts on how much waits to be sent.
    private func checkOutput() {
        let pending = pendingOutput
        if pending == 0, let empty = output {
            output = nil
            pool.put(empty)
        }
        if let most = limits.maximumOutput, pending > most { return close(.outputLimit) }
        if pending == 0 && (state == .finishing || endsAfterOutput) {
            endOutput()
            guard isOpen else { return }
        }
        watchForWriting(if: pending > 0)
        if pending > limits.highWatermark, !isPausedByOutput {
            isPausedByOutput = true
            updateReading()
        } else if pending <= limits.lowWatermark, isPausedByOutput {
            isPausedByOutput = false
            updateReading()
            if let drainHandler { corked { drainHandler(self) } }
        }
    }

    /// Whether something is to be sent as soon as there is room: bytes, or a transport's message that there are no
    /// more.
    var wantsRoom: Bool { pendingOutput > 0 || (state == .finishing || endsAfterOutput) && !hasEndedOutput }

    /// Has the descriptor watched for room exactly while something waits for it.
    func watchForWriting(if isPending: Bool) {
        let watches = if let transport { watches(transport, for: .writable) } else { isPending }
        if writer == nil {
            guard watches else { return }
            writer = DescriptorSource(fileDescriptor: fileDescriptor, events: .writable, origin: origin) {
                [self] _, _ in
                if let transport { serve(transport, .writable) } else { flush() }
            }
            writer!.name = "connection"
        }
        guard let writer, watches != isAwaitingRoom else { return }
        isAwaitingRoom = watches
        if watches {
            do {
                try loop.add(writer, forMode: modes)
            } catch {
                close(.failed(SystemError("watch the connection", errno: EBADF)))
            }
        } else {
            loop.remove(writer, fromMode: modes)
        }
    }

    // MARK: Closing

    private var finishReason = CloseReason.closed

    /// Stops reading, sends what waits, and closes. What was written is not lost as long as the peer reads. Under TLS,
    /// and if the peer has sent something that was not read, the peer then has up to 2 s to end its side. On the loop's
    /// thread.
    ///
    /// - Parameter deadline: how long that may take. After that the connection closes even if something still waits.
    public func finish(within deadline: Duration? = nil) {
        if let deadline { timers?.limit(to: deadline) }
        finish(.closed)
    }

    private func finish(_ reason: CloseReason) {
        guard state == .open else {
            if state == .new { close(reason) }
            return
        }
        state = .finishing
        finishReason = reason
        updateReading()
        if !isCorked { flush() }
    }

    /// Ends this side of the stream and keeps reading. What waits is sent first; then the peer sees the end. On the
    /// loop's thread.
    public func finishWriting() {
        guard state == .open, !endsAfterOutput else { return }
        endsAfterOutput = true
        if pendingOutput == 0, !isCorked { checkOutput() }
    }

    /// Everything is sent: tells the peer that this was all, and closes if nothing more can come either.
    private func endOutput() {
        if !hasEndedOutput {
            if let transport {
                let status = transport.end()
                if -status == Int(EAGAIN) { return }
                if status < 0 { return close(failure("end the connection", status)) }
            }
            if state == .open { shutdown(fileDescriptor, Int32(SHUT_WR)) }
            hasEndedOutput = true
        }
        if state == .finishing {
            if hasEnded || (transport == nil && !hasUnreadInput) { close(finishReason) } else { linger() }
        } else if hasEnded {
            finish(.ended)
        }
    }

    private var hasUnreadInput: Bool {
        var byte: UInt8 = 0
        return recv(fileDescriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) > 0
    }

    /// If a descriptor is closed while something that has arrived is unread, such as the tickets of TLS 1.3, the
    /// connection is reset, and what the system has still to send is lost. So this reads until the peer ends its side
    /// too.
    private func linger() {
        state = .lingering
        shutdown(fileDescriptor, Int32(SHUT_WR))
        timers?.limit(to: .seconds(2))
        updateReading()
    }

    /// Closes at once; what waits to be sent is lost. On the loop's thread; harmless when repeated.
    public func close() {
        close(.closed)
    }

    func close(_ reason: CloseReason) {
        guard state != .closed else { return }
        if let transport, !hasEndedOutput, pendingOutput == 0 { _ = transport.end() }
        state = .closed
        reader?.invalidate()
        writer?.invalidate()
        heldInput?.invalidate()
        timers?.invalidate()
        Glibc.close(fileDescriptor)
        if let output { pool.put(output) }
        let (handler, dropped) = (closeHandler, (receive, endHandler, drainHandler, handshakeHandler, input))
        (reader, writer, heldInput, timers, input, output) = (nil, nil, nil, nil, nil, nil)
        (receive, closeHandler, endHandler, drainHandler, handshakeHandler) = (nil, nil, nil, nil, nil)
        handler?(self, reason)
        withExtendedLifetime(dropped) {}
    }
}
