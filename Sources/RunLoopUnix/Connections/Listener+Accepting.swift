internal import RunLoopKit

extension Listener {
    /// Waits for the next connection of a listener without a handler. While no task waits, the listener accepts
    /// nothing, and peers wait in the system's queue. Await it on the loop's thread.
    ///
    /// ```swift
    /// while let connection = try await listener.accept() {
    ///     loop.task { try await connection.withStream { … } }
    /// }
    /// ```
    ///
    /// - Parameter limits: the limits of the connection.
    /// - Returns: a connection for tasks, which is not started; it closes if it is released. `nil` once the listener
    ///   has been closed.
    /// - Throws: `CancellationError`, in which case no connection is taken; `RunLoop.WaitError` if another task waits,
    ///   or if the loop has ended.
    public nonisolated(nonsending) func accept(
        limits: Connection.Limits = .init(), file: StaticString = #fileID, line: UInt32 = #line
    ) async throws -> Connection? {
        try await acceptSocket().map {
            Connection(adopting: $0.descriptor, on: loop, inModes: modes, limits: limits, file: file, line: line)
        }
    }
}
