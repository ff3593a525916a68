@_spi(Ports) internal import RunLoopKit

extension Daemon {
    // MARK: Running

    /// Waits until the daemon has stopped, while other code, such as ``/RunLoopKit/withLoop(name:_:)``, runs the loop.
    ///
    /// ```swift
    /// let status = try await withLoop { loop in
    ///     let daemon = Daemon(loop: loop, manager: try ServiceManager())
    ///     try daemon.handleSignals()
    ///     daemon.onStop(.drain) { await connections.finish() }
    ///     return try await daemon.run()
    /// }
    /// ```
    ///
    /// If the task is cancelled, the daemon stops and enters its last stage at once; the call still waits for that
    /// stage. Stopping a run of the loop does not stop the daemon: stop the daemon instead, and end the loop
    /// afterwards. Only one task may wait. Await it on the loop's thread.
    ///
    /// - Parameter announcesReady: whether to notify the service manager in the first pass that the service is ready.
    /// - Returns: the exit status, as in the variant that runs the loop.
    /// - Throws: `RunLoop.WaitError` if another task waits, or if the loop has ended, which ends the daemon in any
    ///   stage.
    /// - Precondition: ``mode`` is the default mode.
    public nonisolated(nonsending) func run(announcesReady: Bool = true) async throws -> Int32 {
        if loop.hasGone("a daemon") || loop.hasEnded { throw await loop.remote.endErrorAfterTurn() }
        require(mode == .default, "a daemon is awaited in the default mode only, in which its loop runs")
        if case .stopped(let status) = state { return status }
        guard ending == nil else { throw RunLoop.WaitError.alreadyWaiting("the end of a daemon") }
        let wait = NamedWait(loop.remote, "waits for the end of the daemon")
        ending = wait
        defer { ending = nil }
        if announcesReady, state == .running { later { $0.tell(ServiceManager.ready) } }
        // A separate task, because this task continues to wait even when it is cancelled.
        try await end(of: loop.task(name: "daemon", inModes: modes) { try await wait.wait() })
        guard case .stopped(let status) = state else { throw loop.remote.endError }
        return status
    }

    private func end(
        of task: Task<Void, any Error>, isolation: isolated (any Actor)? = #isolation
    ) async throws {
        let remote = remote
        try await withTaskCancellationHandler {
            _ = isolation
            try await task.value
        } onCancel: {
            remote.abandonRun()
        }
    }

    /// Handles the cancellation of the task that runs the daemon by skipping to the last stage.
    func abandonRun() {
        if state == .running || state == .reloading { stop() }
        if case .stopping(let stage) = state, stage < .exit { hurry() }
    }

    // MARK: Hooks

    /// Adds a hook to a stage of the stop that runs as a task of the loop, in the common modes and the daemon's own,
    /// and finishes when the task ends.
    ///
    /// ```swift
    /// daemon.onStop(.drain, name: "backup") { try? await backup.finish() }
    /// ```
    ///
    /// When its stage reaches its limit, or the stop is hurried, the task is cancelled and the daemon continues without
    /// waiting for it. Otherwise behaves as the variant with a ``Completion``.
    @discardableResult
    public func onStop(
        _ stage: Stage, order: Int = 0, name: String = "hook",
        _ hook: @escaping @isolated(any) () async -> Void, file: StaticString = #fileID, line: UInt32 = #line
    ) -> Bool {
        onStop(stage, order: order, name: name) { [unowned self] done in
            start(name, done, hook, file: file, line: line)
        }
    }

    /// Adds a reload hook that runs as a task of the loop, and finishes when the task ends. A stop of the daemon
    /// cancels the task.
    public func onReload(
        name: String = "hook", _ hook: @escaping @isolated(any) () async -> Void,
        file: StaticString = #fileID, line: UInt32 = #line
    ) {
        onReload(name: name) { [unowned self] done in start(name, done, hook, file: file, line: line) }
    }

    private func start(
        _ name: String, _ done: Completion, _ hook: @escaping @isolated(any) () async -> Void,
        file: StaticString, line: UInt32
    ) {
        assert(tasks[done.call] == nil, "two hooks have one number")
        tasks[done.call] = loop.task(
            name: name, inModes: modes, hook, then: { _ in done() }, file: file, line: line)
    }

    func cancelTasks() {
        for task in tasks.values { task.cancel() }
        tasks = [:]
    }
}
