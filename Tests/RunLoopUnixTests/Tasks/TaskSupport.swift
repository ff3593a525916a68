import RunLoopKit
import Testing

/// Runs `body` on a thread of its own, with a loop.
func onLoop(
    _ body: @escaping @Sendable (RunLoop) async throws -> Void, sourceLocation: SourceLocation = #_sourceLocation
) async {
    do { try await withLoop(body) } catch { Issue.record(error, sourceLocation: sourceLocation) }
}

/// Runs `body` as a task of a loop that ends while the task waits, and tells how it has ended.
func endOfLoop(
    _ body: nonisolated(nonsending) @escaping @Sendable (RunLoop) async throws -> Void
) async -> Result<Void, any Error> {
    let (results, result) = AsyncStream.makeStream(of: Result<Void, any Error>.self)
    let thread = LoopThread(name: "short") { loop in
        loop.task {
            try await body(loop)
        } then: {
            result.yield($0)
        }
        loop.add(Timer(timeInterval: .milliseconds(5), repeats: false) { _ in loop.endAllRuns() }, forMode: .common)
    }
    await thread.ended()
    for await result in results { return result }
    return .failure(CancellationError())
}
