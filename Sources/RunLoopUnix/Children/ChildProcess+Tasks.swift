@_spi(Ports) public import RunLoopKit

extension ChildProcess {
    /// Waits until the child has ended, and returns its exit status. Await it on a loop's thread.
    ///
    /// ```swift
    /// loop.task {
    ///     let child = try ChildProcess.spawn(.named("make"))
    ///     print(try await child.exit())
    /// }
    /// ```
    ///
    /// The call awaits a ``ChildSource``, which reaps the child; several tasks may wait for one child. If the child has
    /// already ended, the call returns in the next pass, or at once if the child has been reaped. A cancelled wait does
    /// not affect the child, and a later wait still returns its status. O(1).
    ///
    /// - Parameter modes: the modes in which the end is noticed; by default the common modes.
    /// - Throws: ``SystemError`` if no descriptor is left; `CancellationError`; `RunLoop.WaitError` if the loop has
    ///   ended.
    /// - Precondition: the calling thread has a loop, and `modes` is not empty.
    public nonisolated(nonsending) func exit(
        inModes modes: RunLoop.Modes = .common, file: StaticString = #fileID, line: UInt32 = #line
    ) async throws -> ExitStatus {
        guard let loop = RunLoop.installed else {
            fatalError(RunLoop.awaitedElsewhere("a child"))
        }
        require(!modes.isEmpty, "a wait for a child needs a mode; without any, it would never end")
        if let status { return status }
        return try await loop.awaitCompletion {
            [self] (completion: @escaping (Result<ExitStatus, SystemError>) -> Void) in
            let source = ChildSource(self, handler: { completion(.success($1)) }, file: file, line: line)
            do throws(SystemError) { try loop.add(source, forMode: modes) } catch { completion(.failure(error)) }
            // The loop keeps the source until the loop ends.
            return { [weak source] in source?.invalidate() }
        }.get()
    }
}
