internal import RunLoopKit

extension Daemon {
    // MARK: Running

    /// Waits until the daemon has stopped, while others run the loop: ``/RunLoopKit/withLoop(named:_:)``, for example.
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
    /// If the task is cancelled, the daemon stops and goes straight to its last stage, which is still waited for. Whoever
    /// stops a run of the loop does not stop the daemon: stop the daemon instead, and end the loop after it. One task
    /// waits; await it on the loop's thread.
    ///
    /// - Parameter announcesReady: whether to tell the service manager in the first pass that the service is ready.
    /// - Returns: the exit status, as the form that runs the loop itself.
    /// - Throws: `RunLoop.WaitError` if another task waits, or if the loop has ended, which ends the daemon wherever it is.
    /// - Precondition: ``mode`` is the default mode.
    public nonisolated(nonsending) func run(announcesReady: Bool = true) async throws -> Int32 {
        require(
            loop.isInstalled,
            "a daemon is awaited on its loop's thread: in a task of the loop, or in one that prefers its executor")
        require(mode == .default, "a daemon that is awaited leaves it to others to run the loop: in the default mode")
        if case .stopped(let status) = state { return status }
        guard ending == nil else { throw RunLoop.WaitError.alreadyWaiting("the end of a daemon") }
        let wait = TaskWait(loop.remote)
        ending = wait
        defer { ending = nil }
        if announcesReady, state == .running { later { $0.tell(ServiceManager.ready) } }
        // A task of its own, because this one may be cancelled and goes on to wait.
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

    /// The task that runs it was cancelled: nothing before the last stage is waited for.
    func abandonRun() {
        if state == .running || state == .reloading { stop() }
        if case .stopping(let stage) = state, stage < .exit { hurry() }
    }

    // MARK: Hooks

    /// Adds a hook to a stage of the stop that is a task of the loop, in the common modes and the daemon's own. It has
    /// finished when the task has ended.
    ///
    /// ```swift
    /// daemon.onStop(.drain, name: "backup") { try? await backup.finish() }
    /// ```
    ///
    /// When the limit of its stage is reached, or somebody is in a hurry, the task is cancelled and the daemon goes on
    /// without waiting for it. Everything else is as for the form with a ``Completion``.
    @discardableResult
    public func onStop(
        _ stage: Stage, order: Int = 0, name: String = "hook",
        _ hook: @escaping @isolated(any) () async -> Void, file: StaticString = #fileID, line: UInt32 = #line
    ) -> Bool {
        onStop(stage, order: order, name: name) { [unowned self] done in
            start(name, done, hook, file: file, line: line)
        }
    }

    /// Adds a hook for reloads that is a task of the loop and has finished when the task has ended. A stop of the daemon
    /// cancels it.
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
        tasks[done.call] = loop.task(
            name: name, inModes: modes, hook, then: { _ in done() }, file: file, line: line)
    }

    func cancelTasks() {
        for task in tasks.values { task.cancel() }
        tasks = [:]
    }
}
