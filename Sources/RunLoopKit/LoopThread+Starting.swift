@_spi(Ports) public import RunLoopCore

extension LoopThread {
    /// Starts a thread that calls `setUp` with its loop and runs the loop until it is stopped or nothing is left in it.
    /// Any thread.
    ///
    /// - Parameters:
    ///   - name: a name for debuggers and reports.
    ///   - isService: whether the thread only serves others, for example by watching them or by doing their work. In a
    ///     simulation, such a thread learns last that nothing can happen any more. A recording leaves it out.
    ///   - setUp: called on the new thread; adds items to the loop.
    public convenience init(
        name: String = "loop", isService: Bool = false, setUp: @escaping @Sendable (RunLoop) -> Void
    ) {
        self.init(name: name, in: RunLoop.currentWorld, isService: isService, setUp: setUp)
    }

    /// Starts a serial worker: a thread that runs the work posted to it, one piece after another, until it is stopped.
    /// Any thread.
    ///
    /// ```swift
    /// let disk = LoopThread(name: "disk")
    /// disk.remote.perform { _ in … }
    /// let size = try await disk.remote.run { _ in … }
    /// ```
    ///
    /// `RunLoop.Remote.perform` posts a block, as `async` does to a `DispatchQueue(label:)`, and `RunLoop.Remote.run`
    /// awaits the result of one. Unlike a queue, the worker has a thread of its own, which lives until ``stop()``.
    ///
    /// - Parameters:
    ///   - name: a name for debuggers and reports.
    ///   - isService: whether the thread only serves others; see ``init(name:isService:setUp:)``.
    public convenience init(name: String, isService: Bool = false) {
        self.init(name: name, isService: isService) { loop in
            let source = CustomSource()
            source.name = "worker"
            loop.add(source, forMode: .common)
        }
    }
}

/// Runs `body` beside a thread with a loop of its own, and ends that thread before it returns or throws.
///
/// The thread lives until `body` has ended, even if nothing is scheduled in its loop.
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
