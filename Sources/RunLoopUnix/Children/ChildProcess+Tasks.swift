public import RunLoopKit

extension ChildProcess {
    /// Waits until the child has ended, and tells how. Await it on the thread of a loop.
    ///
    /// ```swift
    /// loop.task {
    ///     let child = try ChildProcess.spawn(.named("make"))
    ///     print(try await child.exit())
    /// }
    /// ```
    ///
    /// It is a ``ChildSource`` that is awaited: it reaps the child, several tasks may wait for one child, and each is
    /// told. If the child ended before, that is told in the next pass, or at once if it was reaped. A wait that is
    /// cancelled leaves the child alone, and a later one is told of its end. O(1).
    ///
    /// - Parameter modes: the modes in which the end is noticed; the common modes unless given.
    /// - Throws: ``SystemError`` if there is no descriptor left; `CancellationError`; `RunLoop.WaitError` if the loop has
    ///   ended.
    /// - Precondition: the calling thread has a loop, and there is a mode.
    public nonisolated(nonsending) func exit(
        inModes modes: RunLoop.Modes = .common, file: StaticString = #fileID, line: UInt32 = #line
    ) async throws -> ExitStatus {
        guard let loop = RunLoop.installed else {
            fatalError(
                "a child is awaited on a loop's thread: in a task of the loop, or in one that prefers its executor")
        }
        require(!modes.isEmpty, "a wait for a child needs a mode; without any, it would never end")
        if let status { return status }
        return try await CompletionWait<Result<ExitStatus, SystemError>>.value(on: loop) { [self] completion in
            let source = ChildSource(self, handler: { completion(.success($1)) }, file: file, line: line)
            do throws(SystemError) { try loop.add(source, forMode: modes) } catch { completion(.failure(error)) }
            // The loop keeps the source, until its end.
            return { [weak source] in source?.invalidate() }
        }.get()
    }
}
