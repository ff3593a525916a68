public import RunLoopKit

extension HostResolver {
    /// Finds the addresses of `name`, in the order in which to try them. In all other respects this behaves as the form
    /// with a completion. Await it on the loop's thread.
    ///
    /// - Throws: ``Failure``; `CancellationError` if the task is cancelled, which acts as ``HostLookup/cancel()``;
    ///   `RunLoop.WaitError` if the loop has ended.
    public nonisolated(nonsending) static func resolve(
        _ name: String, port: UInt16, on loop: RunLoop, modes: RunLoop.Modes = .common,
        timeout: Duration = .seconds(30), file: StaticString = #fileID, line: UInt32 = #line
    ) async throws -> [Endpoint] {
        try await CompletionWait<Result<[Endpoint], Failure>>.value(on: loop) { completion in
            let lookup = resolve(
                name, port: port, on: loop, modes: modes, timeout: timeout, completion: completion, file: file,
                line: line)
            // The loop keeps the look-up until the loop ends.
            return { [weak lookup] in lookup?.cancel() }
        }.get()
    }
}
