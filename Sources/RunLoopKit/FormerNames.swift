public import RunLoopCore

// Names of version 0.4.0, which the next version no longer has.

/// The former spelling: the label is `name:` now.
@available(*, deprecated, renamed: "withLoop(name:_:)")
public nonisolated(nonsending) func withLoop<Success: Sendable>(
    named name: String, _ body: @escaping @Sendable (RunLoop) async throws -> Success
) async throws -> Success {
    try await withLoop(name: name, body)
}
