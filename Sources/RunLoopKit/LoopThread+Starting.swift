public import RunLoopCore

extension LoopThread {
    /// Starts a thread that calls `setUp` with its loop, runs the loop until nothing is left in it or until it is
    /// stopped, and ends.
    ///
    /// - Parameters:
    ///   - name: a name for debuggers and reports.
    ///   - isService: whether the thread only serves others, as one that watches them does. In a simulation, that
    ///     nothing is left for it to wait for says nothing: the others are told of it before.
    ///   - setUp: called on the new thread; adds what the loop is to do.
    public convenience init(
        name: String = "loop", isService: Bool = false, setUp: @escaping @Sendable (RunLoop) -> Void
    ) {
        self.init(name: name, in: RunLoop.currentWorld, isService: isService, setUp: setUp)
    }
}

/// Runs `body` beside a thread with a loop of its own, and ends that thread before it returns, whatever `body` does.
///
/// The thread lives until `body` has returned, also when nothing is scheduled in its loop.
///
/// - Parameters:
///   - name: a name for debuggers and reports.
///   - setUp: called on the new thread.
///   - body: called on this thread.
public func withLoopThread<Result>(
    name: String = "loop", setUp: @escaping @Sendable (RunLoop) -> Void = { _ in },
    _ body: (LoopThread) throws -> Result
) rethrows -> Result {
    let thread = LoopThread(name: name) { loop in
        loop.add(CustomSource(), forMode: .common)
        setUp(loop)
    }
    defer {
        thread.stop()
        thread.join()
    }
    return try body(thread)
}
