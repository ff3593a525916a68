@_spi(Ports) public import RunLoopCore

/// Runs `body` on a thread with a loop of its own, and ends the loop and its tasks before it returns or throws.
///
/// ```swift
/// let answer = try await withLoop { loop in
///     loop.task { … }
///     try await loop.clock.sleep(for: .seconds(1))
///     return 42
/// }
/// ```
///
/// The calling task itself runs `body`, on the loop's thread, where it may use the objects of that thread. When `body`
/// has ended, running tasks of ``RunLoop/task(name:priority:inModes:_:file:line:function:)`` are cancelled and awaited.
/// Any thread.
///
/// - Parameters:
///   - name: a name for debuggers and reports.
///   - body: called once. The loop keeps running while it waits, even if nothing is scheduled.
/// - Throws: the error of `body`; ``RunLoop/StartError`` if the system has no descriptor or thread left.
public nonisolated(nonsending) func withLoop<Success: Sendable>(
    name: String = "loop", _ body: @escaping @Sendable (RunLoop) async throws -> Success
) async throws -> Success {
    let thread = try LoopThread(starting: name, in: RunLoop.currentWorld) { $0.add(CustomSource(), forMode: .common) }
    let result = await withTaskExecutorPreference(thread.remote.executor().task) {
        // Unsafe, but all of this stays on the loop's thread.
        nonisolated(unsafe) let loop = thread.remote.installed!
        let result: Result<Success, any Error>
        do { result = .success(try await body(loop)) } catch { result = .failure(error) }
        await loop.endTasks()
        return result
    }
    thread.stop()
    await thread.ended()
    return try result.get()
}
