internal import RunLoopKit

// What tasks do with a connection that has no receive handler. All of it is awaited on the loop's thread: in a task of
// the loop, in a task that prefers its executor, or on an actor that lives there.

extension Connection {
    /// Starts the connection, calls `body`, and then finishes as ``finish(within:)`` does: when this returns, the connection
    /// is closed. If `body` throws, it closes at once. The peer's end does not close the connection before `body` returns, so
    /// that `body` may answer.
    ///
    /// ```swift
    /// loop.task {
    ///     try await connection.withStream { stream in
    ///         while let bytes = try await stream.read() { try await stream.write(bytes) }
    ///     }
    /// }
    /// ```
    ///
    /// On the loop's thread.
    ///
    /// - Throws: what `body` throws; ``ClosedError`` if something was not sent; `CancellationError` if the task is
    ///   cancelled while it is being sent, which closes at once.
    public nonisolated(nonsending) func withStream<Result>(
        _ body: nonisolated(nonsending) (Connection) async throws -> Result
    ) async throws -> Result {
        let waits = checkedWaits
        if isNew { try start() }
        do {
            waits.scopes += 1
            defer { waits.scopes -= 1 }
            let result = try await body(self)
            finish()
            if isOpen { try await waits.makeCloser().wait() }
            guard hasClosedInOrder else { throw closeError }
            return result
        } catch {
            close()
            throw error
        }
    }

    /// Waits for bytes, and takes at most `count` of them: as many as have come. On the loop's thread.
    ///
    /// As long as no task waits, no more than 64 KiB are read: what else arrives waits in the system, and then at the
    /// peer. A wait that is cancelled takes nothing.
    ///
    /// - Returns: at least one byte; `nil` at the end of the stream. Outside of ``withStream(_:)``, and without an
    ///   ``endHandler``, the connection then sends the waiting bytes and closes.
    /// - Throws: ``ClosedError`` if the connection was closed for another reason than the peer's end;
    ///   `CancellationError`; `RunLoop.WaitError` if another task reads, or if the loop has ended.
    public nonisolated(nonsending) func read(atMost count: Int = .max) async throws -> [UInt8]? {
        require(count > 0, "at least one byte is read, not \(count)")
        let waits = checkedWaits
        waits.seen = 0
        while let isThere = try asksForInput(beyond: 0) {
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

    /// Waits for bytes that have not been shown yet, and shows all that are there to `use`, which returns how many of
    /// them it has used, as a ``ReceiveHandler`` does. The rest comes again, together with what arrives next. Nothing is
    /// copied or allocated. On the loop's thread.
    ///
    /// ```swift
    /// while try await connection.receive({ bytes in parser.parse(bytes) }) {}
    /// ```
    ///
    /// - Returns: `false` at the end of the stream; `use` is then not called, and ``unusedInput`` tells how much is left.
    ///   The connection then closes as ``read(atMost:)`` says.
    /// - Throws: as ``read(atMost:)``, and what `use` throws.
    public nonisolated(nonsending) func receive(_ use: (Span<UInt8>) throws -> Int) async throws -> Bool {
        let waits = checkedWaits
        while let isThere = try asksForInput(beyond: waits.seen) {
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

    /// Whether more bytes than `count` are there; if not, the caller waits for the reader's turn and asks again.
    /// `nil` at the end of the stream.
    func asksForInput(beyond count: Int) throws -> Bool? {
        if isNew { try start() }
        guard !checkedWaits.reader.isTaken else {
            throw RunLoop.WaitError.alreadyWaiting("what a connection receives")
        }
        while unusedInput <= count {
            guard try !isAtEnd() else {
                closeAtEnd()
                return nil
            }
            taskWantsInput()
            // That may have read what the stream held.
            if unusedInput <= count && isOpen { return false }
        }
        return true
    }

    /// Sends bytes, and returns when no more than the high watermark waits. While the connection is full it takes no
    /// more, and goes on when no more than the low watermark waits. On the loop's thread.
    ///
    /// - Throws: ``WriteError``, which tells how many bytes were taken, if the task is cancelled, or if the connection is
    ///   closed or was finished; `RunLoop.WaitError` if another task waits to write.
    public nonisolated(nonsending) func write(_ bytes: [UInt8]) async throws {
        let waits = checkedWaits
        if isNew { try start() }
        var taken = 0
        while true {
            guard mayWrite else { throw WriteError(written: taken, cause: .closed(closeError)) }
            guard !waits.writer.isTaken else { throw RunLoop.WaitError.alreadyWaiting("room in a connection") }
            if !isFull {
                guard taken < bytes.count else { return }
                // One byte more than fits makes it full.
                let count = min(bytes.count - taken, limits.highWatermark - pendingOutput + 1)
                bytes.withUnsafeBytes { write(UnsafeRawBufferPointer(rebasing: $0[taken..<taken + count])) }
                taken += count
                guard isFull else { continue }
            }
            do { try await waits.writer.wait() } catch is CancellationError {
                throw WriteError(written: taken, cause: .cancelled)
            }
        }
    }

    /// Sends a text as UTF-8, as the form for bytes does.
    public nonisolated(nonsending) func write(_ text: String) async throws {
        try await write(Array(text.utf8))
    }

    /// Waits for more input. If a process outside of a simulation is to answer, the time of that waits as well.
    nonisolated(nonsending) func waitForInput(_ waits: ConnectionWaits) async throws {
        let hold = stream.holdForAnswer()
        defer { hold?.release() }
        try await waits.reader.wait()
    }

    private var checkedWaits: ConnectionWaits {
        require(
            loop.isInstalled,
            "a connection is awaited on its loop's thread: in a task of the loop, or in one that prefers its executor")
        guard let waits else {
            fatalError("a connection with a receive handler is not awaited; make it without the handler")
        }
        return waits
    }

    /// A task waits for more than there is.
    func taskWantsInput() {
        guard let waits, waits.holdsInput else { return }
        waits.holdsInput = false
        update { _ = machine.resume() }
    }

    /// Gives a task what is there, and removes what it has used. What is left of that is limited, if it has seen it.
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
            used >= 0 && used <= unusedInput, "one uses some of the bytes that are there, not \(used) of \(unusedInput)"
        )
        guard let input else { return result }
        input.discard(used)
        if input.isEmpty {
            self.input = nil
            pool.put(input)
        }
        return result
    }

    /// Whether nothing more can be read. Throws the reason for which it was closed, if that was not the end.
    func isAtEnd() throws -> Bool {
        guard !isOpen else { return machine.hasEnded }
        if machine.closeReason == .ended || (machine.hasEnded && !hasMoved) { return true }
        throw closeError
    }

    /// A task has been told of the peer's end. Unless somebody else is to close the connection, it finishes.
    func closeAtEnd() {
        guard isOpen, endHandler == nil, waits?.scopes == 0 else { return }
        update { machine.finish(.ended) }
    }

    /// Why it was closed.
    var closeError: any Error {
        machine.closeReason == .loopEnded ? loop.remote.endError : ClosedError(reason: machine.closeReason)
    }

    var isNew: Bool { machine.isNew }
    var isFull: Bool { machine.isFull }
    var mayWrite: Bool { machine.mayWrite }
    /// Whether it was closed in order: everything is sent, or has moved along.
    var hasClosedInOrder: Bool {
        hasMoved || machine.closeReason == .closed || machine.closeReason == .ended
    }

    /// A task could not write all that it wanted. `Sendable`.
    public struct WriteError: Error, Sendable, CustomStringConvertible {
        /// How many of the bytes were taken. They are sent if the connection stays open.
        public let written: Int
        /// Why no more were.
        public let cause: Cause

        /// Why a write ended early.
        public enum Cause: Sendable {
            /// The task was cancelled.
            case cancelled
            /// The connection is closed, or was finished; the error says why.
            case closed(any Error)
        }

        public var description: String { "\(written) bytes were taken: \(cause)" }
    }
}

extension Connection.WriteError: CancellationReport {
    package var isCancellation: Bool { if case .cancelled = cause { true } else { false } }
}
