@_spi(Ports) internal import RunLoopKit

// The interface for tasks of a connection without a receive handler. All calls are awaited on the loop's thread: in a
// task of the loop, in a task that prefers its executor, or on an actor of that executor.

extension Connection {
    /// Starts the connection, calls `body`, then finishes as ``finish(within:)`` does, and returns once the connection
    /// is closed. If `body` throws, the connection closes at once. The peer's end does not close the connection before
    /// `body` returns, so that `body` may answer.
    ///
    /// ```swift
    /// loop.task {
    ///     try await connection.withStream { stream in
    ///         while let bytes = try await stream.read() { try await stream.write(bytes) }
    ///     }
    /// }
    /// ```
    ///
    /// Await it on the loop's thread.
    ///
    /// - Throws: any error that `body` throws; ``ClosedError`` if output was not sent; `CancellationError` if the task
    ///   is cancelled while output is being sent, which closes the connection at once.
    public nonisolated(nonsending) func withStream<Result>(
        _ body: nonisolated(nonsending) (Connection) async throws -> Result
    ) async throws -> Result {
        guard let waits = checkedWaits else { throw await loop.remote.endErrorAfterTurn() }
        if machine.isNew { try start() }
        do {
            waits.scopes += 1
            defer { waits.scopes -= 1 }
            let result = try await body(self)
            finish()
            if isOpen { try await waits.makeCloser().wait() }
            // All output was sent or moved.
            guard hasMoved || machine.closeReason == .closed || machine.closeReason == .ended else { throw closeError }
            return result
        } catch {
            close()
            throw error
        }
    }

    /// Waits for bytes, and returns the bytes that have arrived, at most `count`. Await it on the loop's thread.
    ///
    /// While no task waits, the connection reads at most 64 KiB; further bytes wait in the system, and then at the
    /// peer. A cancelled wait consumes nothing.
    ///
    /// - Returns: at least one byte; `nil` at the end of the stream. Outside of ``withStream(_:)``, and without an
    ///   ``endHandler``, the connection then sends the waiting bytes and closes.
    /// - Throws: ``ClosedError`` if the connection was closed for any reason except the peer's end;
    ///   `CancellationError`; `RunLoop.WaitError` if another task reads, or if the loop has ended.
    public nonisolated(nonsending) func read(atMost count: Int = .max) async throws -> [UInt8]? {
        require(count > 0, "at least one byte is read, not \(count)")
        guard let waits = checkedWaits else { throw await loop.remote.endErrorAfterTurn() }
        waits.seen = 0
        while let isThere = try asksForInput(waits, beyond: 0) {
            guard isThere else {
                try await waitForInput(waits)
                continue
            }
            return useInput(seesAll: false) { bytes in
                let taken = min(count, bytes.count)
                return (taken, Array(bytes.prefix(taken)))
            }
        }
        return nil
    }

    /// Waits for new bytes, and passes all available bytes to `use`, which returns the number of bytes used, as a
    /// ``ReceiveHandler`` does. The rest is passed again, together with later bytes. Nothing is copied or allocated.
    /// Await it on the loop's thread.
    ///
    /// ```swift
    /// while try await connection.receive({ bytes in parser.parse(bytes) }) {}
    /// ```
    ///
    /// - Returns: `false` at the end of the stream; `use` is then not called, and ``unusedInput`` is the number of
    ///   remaining bytes. The connection then closes as after ``read(atMost:)``.
    /// - Throws: the errors of ``read(atMost:)``, and any error that `use` throws.
    public nonisolated(nonsending) func receive(_ use: (Span<UInt8>) throws -> Int) async throws -> Bool {
        guard let waits = checkedWaits else { throw await loop.remote.endErrorAfterTurn() }
        while let isThere = try asksForInput(waits, beyond: waits.seen) {
            guard isThere else {
                try await waitForInput(waits)
                continue
            }
            try useInput(seesAll: true) { (try use(Span(_unsafeBytes: $0)), ()) }
            waits.seen = unusedInput
            return true
        }
        return false
    }

    /// Returns whether more than `count` bytes are available; if not, the caller waits for the reader's turn and asks
    /// again. `nil` at the end of the stream.
    func asksForInput(_ waits: ConnectionWaits, beyond count: Int) throws -> Bool? {
        if machine.isNew { try start() }
        guard !waits.reader.isTaken else { throw RunLoop.WaitError.alreadyWaiting("what a connection receives") }
        while unusedInput <= count {
            // The wait throws the error.
            if hasLostLoop { return false }
            guard try !isAtEnd() else {
                update { machine.endReported(isAnswered: endHandler != nil || waits.scopes > 0) }
                return nil
            }
            if machine.holdsInput { update { machine.releaseInput() } }
            // The release may have read input that the stream held.
            if unusedInput <= count && isOpen { return false }
        }
        return true
    }

    /// Sends bytes, and returns when no more than the high watermark is waiting. A full connection accepts no more
    /// bytes until no more than the low watermark is waiting. Await it on the loop's thread.
    ///
    /// - Throws: ``WriteError``, with the number of accepted bytes, if the task is cancelled, or if the connection is
    ///   closed or finished; `RunLoop.WaitError` if another task waits to write.
    public nonisolated(nonsending) func write(_ bytes: [UInt8]) async throws {
        guard let waits = checkedWaits else { throw await loop.remote.endErrorAfterTurn() }
        if machine.isNew { try start() }
        var taken = 0
        while true {
            guard machine.mayWrite else {
                if hasLostLoop { _ = await loop.remote.endErrorAfterTurn() }
                throw WriteError(written: taken, cause: .closed(closeError))
            }
            guard !waits.writer.isTaken else { throw RunLoop.WaitError.alreadyWaiting("room in a connection") }
            if !machine.isFull {
                guard taken < bytes.count else { return }
                // One byte beyond the high watermark makes the connection full.
                // While a handler runs the loop, it is not full however much waits.
                let room = limits.highWatermark - pendingOutput + 1
                let count = room > 0 ? min(bytes.count - taken, room) : bytes.count - taken
                bytes.withUnsafeBytes { write(UnsafeRawBufferPointer(rebasing: $0[taken..<taken + count])) }
                assert(count > 0, "a task writes nothing, again and again")
                taken += count
                guard machine.isFull else { continue }
            }
            do { try await waits.writer.wait() } catch is CancellationError {
                throw WriteError(written: taken, cause: .cancelled)
            }
        }
    }

    /// Sends a text as UTF-8; see the variant for bytes.
    public nonisolated(nonsending) func write(_ text: String) async throws {
        try await write(Array(text.utf8))
    }

    /// Waits for more input. If a process outside the simulation has to answer, simulated time waits as well.
    nonisolated(nonsending) func waitForInput(_ waits: ConnectionWaits) async throws {
        let hold = stream.holdForAnswer()
        defer { hold?.release() }
        try await waits.reader.wait()
    }

    /// The waits of the connection's tasks; `nil` if the loop has ended and its thread is gone.
    var checkedWaits: ConnectionWaits? {
        if loop.hasGone("a connection") { return nil }
        guard machine.isForTasks else {
            fatalError("a connection with a receive handler is not awaited; make it without the handler")
        }
        return madeWaits
    }

    var madeWaits: ConnectionWaits {
        if let waits { return waits }
        let waits = ConnectionWaits(loop.remote)
        self.waits = waits
        return waits
    }

    /// Passes the available input to a task, and removes the bytes that it uses. Limits apply to bytes that the task
    /// saw and left unused.
    func useInput<Result>(
        seesAll: Bool, _ use: (UnsafeRawBufferPointer) throws -> (used: Int, result: Result)
    ) rethrows -> Result {
        machine.receivingBegins()
        defer {
            update {
                let unused = input?.count ?? 0
                machine.receivingEnds(unused: unused, held: heldInput, isWhole: seesAll)
                if hasBudget && isOpen { count(unused + heldInput) }
            }
        }
        let (used, result) = try use(input?.bytes ?? UnsafeRawBufferPointer(start: nil, count: 0))
        require(
            used >= 0 && used <= unusedInput, "at most the unused bytes can be used, not \(used) of \(unusedInput)"
        )
        guard let input else { return result }
        input.discard(used)
        if input.isEmpty {
            self.input = nil
            pool.put(input)
        }
        return result
    }

    /// True if the end of the loop has closed the connection in the middle of the stream.
    private var hasLostLoop: Bool { !isOpen && machine.closeReason == .loopEnded && !machine.hasReportedEnd }

    /// Returns whether nothing more can be read. Throws the close reason unless that was the end of the stream.
    func isAtEnd() throws -> Bool {
        guard !isOpen else { return machine.hasReportedEnd }
        if machine.closeReason == .ended || (machine.hasReportedEnd && !hasMoved) { return true }
        throw closeError
    }

    /// The error for the connection's close reason.
    var closeError: any Error {
        machine.closeReason == .loopEnded ? loop.remote.endError : ClosedError(reason: machine.closeReason)
    }

    /// The error of a connection that closed before a task's wait ended. `Sendable`.
    public struct ClosedError: Error, Sendable, Equatable, CustomStringConvertible {
        /// The reason why the connection was closed.
        public let reason: CloseReason

        /// Creates an error with a close reason.
        public init(reason: CloseReason) {
            self.reason = reason
        }

        public var description: String { "the connection was closed: \(reason)" }
    }

    /// The error of an incomplete write. `Sendable`.
    public struct WriteError: Error, Sendable, CustomStringConvertible {
        /// The number of accepted bytes, which are sent if the connection stays open.
        public let written: Int
        /// The cause.
        public let cause: Cause

        /// The cause of an incomplete write.
        public enum Cause: Sendable {
            /// The task was cancelled.
            case cancelled
            /// The connection is closed or finished; the error has the reason.
            case closed(any Error)
        }

        public var description: String { "\(written) bytes were taken: \(cause)" }
    }
}

extension Connection.WriteError: CancellationReport {
    var isCancellation: Bool { if case .cancelled = cause { true } else { false } }
}
