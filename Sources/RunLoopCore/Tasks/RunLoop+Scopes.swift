extension RunLoop {
    /// Runs `body`, and cancels it if it takes longer than `duration` on the loop's clock.
    ///
    /// ```swift
    /// let line = try await loop.withTimeout(.seconds(5)) { try await connection.read() }
    /// ```
    ///
    /// Otherwise like ``withDeadline(_:isolation:_:file:line:function:)``.
    @discardableResult
    public func withTimeout<Success>(
        _ duration: Duration, isolation: isolated (any Actor)? = #isolation,
        _ body: () async throws -> Success, file: StaticString = #fileID, line: UInt32 = #line,
        function: StaticString = #function
    ) async throws -> Success {
        let label = TaskLabel(name: nil, origin: Origin(file: file, line: line), function: function)
        return try await Tasks(on: self, until: now + duration, label).run { _ in try await body() }
    }

    /// Runs `body`, and cancels it if it has not ended at `deadline`, a date of the loop's clock.
    ///
    /// The body lives on the loop like the calling task: it runs in the modes of that task, isolated as the caller, and
    /// may use values of the loop's thread. The scope waits for it in any case, so a body that ignores its cancellation
    /// is late, and a value that it returns after all is returned.
    ///
    /// Deadlines nest, and so do scopes with tasks. If the caller is cancelled before the body has ended, for example
    /// because an outer deadline has passed, the body is cancelled, and its error is thrown here: of several deadlines
    /// that have passed by then, the outermost throws `TimeoutError`. A body that computes past its deadline is
    /// cancelled as soon as it waits on the loop. A deadline that has passed already cancels the body before it begins.
    /// On the loop's thread; O(log n), and a task.
    ///
    /// Source: Trio's page on `fail_at`, and its rule for nested cancelled scopes.
    ///
    /// - Throws: ``TimeoutError`` if the deadline passed, the body threw after it, and the caller is not cancelled;
    ///   otherwise the error of the body.
    @discardableResult
    public func withDeadline<Success>(
        _ deadline: Instant, isolation: isolated (any Actor)? = #isolation,
        _ body: () async throws -> Success, file: StaticString = #fileID, line: UInt32 = #line,
        function: StaticString = #function
    ) async throws -> Success {
        let label = TaskLabel(name: nil, origin: Origin(file: file, line: line), function: function)
        return try await Tasks(on: self, until: deadline, label).run { _ in try await body() }
    }

    /// Runs `body` shielded from its caller's cancellation, and cancels it if it takes longer than `duration` on the
    /// loop's clock. For work that is due after a cancellation too.
    ///
    /// ```swift
    /// do { try await serve(connection) } catch {
    ///     try? await loop.withShield(.seconds(2)) { try await connection.write(goodbye) }
    ///     throw error
    /// }
    /// ```
    ///
    /// The caller's cancellation and outer deadlines do not reach the body, whether they came before or come now; all
    /// of them wait for it, so the limit should be short. After the call they are in force again: the caller's next
    /// wait throws. The end of the loop ends the waits of the body all the same. Otherwise like
    /// ``withDeadline(_:isolation:_:file:line:function:)``, and a body may make scopes and start tasks in them.
    ///
    /// Source: Trio's `fail_after(seconds, shield=True)`.
    ///
    /// - Throws: ``TimeoutError`` if the limit passed and the body threw after it; otherwise the error of the body.
    @discardableResult
    public func withShield<Success>(
        _ duration: Duration, isolation: isolated (any Actor)? = #isolation,
        _ body: () async throws -> Success, file: StaticString = #fileID, line: UInt32 = #line,
        function: StaticString = #function
    ) async throws -> Success {
        let label = TaskLabel(name: nil, origin: Origin(file: file, line: line), function: function)
        return try await Tasks(on: self, until: now + duration, isShield: true, label).run { _ in try await body() }
    }

    /// Runs `body`, which may start tasks, and returns when the body and the tasks have ended.
    ///
    /// ```swift
    /// try await loop.withTasks { tasks in
    ///     tasks.start {
    ///         for try await _ in loop.clock.ticks(every: .seconds(30)) { try await connection.write(ping) }
    ///     }
    ///     while let bytes = try await connection.read() { try await connection.write(bytes) }
    ///     tasks.cancel()
    /// }
    /// ```
    ///
    /// The first error, of the body or of a task, cancels the others, and is thrown when they have ended; later ones
    /// are dropped. If the caller is cancelled, so are the body and the tasks. All of them live on the loop like the
    /// calling task: in its modes, isolated as the caller, and free to use values of the loop's thread, variables of
    /// the caller included. The scope may have a deadline, as with ``withDeadline(_:isolation:_:file:line:function:)``.
    /// On the loop's thread.
    ///
    /// Source: Trio's page on nurseries and cancel scopes.
    ///
    /// - Parameters:
    ///   - deadline: the date at which everything is cancelled. The default is never.
    ///   - body: called once, with an object that starts tasks.
    /// - Returns: the result of `body`.
    /// - Throws: the first error; ``TimeoutError`` if the deadline passed before that and cut the body or a task short,
    ///   and the caller is not cancelled; `CancellationError` if the caller's cancellation did, or if
    ///   ``Tasks/cancel()`` ended the body.
    @discardableResult
    public func withTasks<Success>(
        until deadline: Instant = .distantFuture, isolation: isolated (any Actor)? = #isolation,
        _ body: (Tasks) async throws -> Success, file: StaticString = #fileID, line: UInt32 = #line,
        function: StaticString = #function
    ) async throws -> Success {
        let label = TaskLabel(name: nil, origin: Origin(file: file, line: line), function: function)
        return try await Tasks(on: self, until: deadline, label).run(body)
    }
}
