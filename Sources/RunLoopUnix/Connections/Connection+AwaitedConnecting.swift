public import RunLoopKit

extension Connection {
    /// Connects to an address, and returns a connection for tasks, which is not started yet. In all other respects this
    /// behaves as the form with a completion handler. Await it on the loop's thread.
    ///
    /// - Throws: ``SystemError``; `CancellationError` if the task is cancelled, which closes the socket;
    ///   `RunLoop.WaitError` if the loop has ended.
    public nonisolated(nonsending) static func connect(
        to address: Endpoint, on loop: RunLoop, modes: RunLoop.Modes = .common, limits: Limits = Limits(),
        timeout: Duration = .seconds(30), file: StaticString = #fileID, line: UInt32 = #line
    ) async throws -> Connection {
        try await CompletionWait<Result<Connection, SystemError>>.value(on: loop) { completion in
            let attempt = connect(
                to: address, on: loop, modes: modes, limits: limits, timeout: timeout, completion: completion,
                file: file, line: line)
            // The loop keeps the attempt: the end of the loop releases the completion, which resumes the task.
            return { [weak attempt] in attempt?.cancel() }
        }.get()
    }

    /// Looks up a host, connects to it, and returns a connection for tasks, which is not started yet. In all other
    /// respects this behaves as the form with a completion handler. Await it on the loop's thread.
    ///
    /// - Throws: ``ConnectError``; `CancellationError` if the task is cancelled, which leaves nothing open;
    ///   `RunLoop.WaitError` if the loop has ended.
    public nonisolated(nonsending) static func connect(
        host: String, port: UInt16, on loop: RunLoop, modes: RunLoop.Modes = .common, limits: Limits = Limits(),
        timeout: Duration = .seconds(30), retry: Retry? = nil, file: StaticString = #fileID, line: UInt32 = #line
    ) async throws -> Connection {
        try await CompletionWait<Result<Connection, ConnectError>>.value(on: loop) { completion in
            let attempt = connect(
                host: host, port: port, on: loop, modes: modes, limits: limits, timeout: timeout, retry: retry,
                completion: completion, file: file, line: line)
            // The loop keeps the attempt: the end of the loop releases the completion, which resumes the task.
            return { [weak attempt] in attempt?.cancel() }
        }.get()
    }
}
