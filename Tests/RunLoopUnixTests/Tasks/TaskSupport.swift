@_spi(Ports) import RunLoopKit
import Testing

/// Runs `body` on a thread of its own, with a loop.
func onLoop(
    _ body: @escaping @Sendable (RunLoop) async throws -> Void, sourceLocation: SourceLocation = #_sourceLocation
) async {
    do { try await withLoop(body) } catch { Issue.record(error, sourceLocation: sourceLocation) }
}

/// Runs `body` twice on a loop that ends meanwhile, in a task of the loop and in one that only prefers its executor,
/// and returns their results.
func endsOfLoop(
    _ body: nonisolated(nonsending) @escaping @Sendable (RunLoop) async throws -> Void
) async -> [Result<Void, any Error>] {
    let (results, result) = AsyncStream.makeStream(of: Result<Void, any Error>.self)
    let thread = LoopThread(name: "short") { loop in
        loop.task {
            try await body(loop)
        } then: {
            result.yield($0)
        }
        // Unsafe, but the task stays on the loop's thread as long as there is a loop.
        nonisolated(unsafe) let ownLoop = loop
        Task(executorPreference: loop.remote.executor().task) {
            do { result.yield(.success(try await body(ownLoop))) } catch { result.yield(.failure(error)) }
        }
        loop.add(Timer(timeInterval: .milliseconds(5), repeats: false) { _ in loop.endAllRuns() }, forMode: .common)
    }
    await thread.ended()
    var ends: [Result<Void, any Error>] = []
    for await result in results {
        ends.append(result)
        if ends.count == 2 { break }
    }
    return ends
}
