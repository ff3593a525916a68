extension RunLoop {
    /// Starts a task that lives on the loop: all of it runs on the loop's thread, in one of `modes`, and may use
    /// objects of that thread, the loop and its items included.
    ///
    /// ```swift
    /// loop.task {
    ///     while let bytes = try await connection.read() { try await connection.write(bytes) }
    /// }
    /// ```
    ///
    /// Where code is isolated to the main actor, as in `main.swift`, so is the closure, and the loop of the main thread
    /// serves the main actor from then on.
    ///
    /// The task starts in the next pass, never at once. Until it has ended it keeps its modes from being empty, and the
    /// end of the loop cancels it; a task that another one starts as the loop ends is cancelled at once. A task that
    /// has not ended then, or has not after 10,000 further waits for the loop, continues on Swift's default executor,
    /// because the loop's thread may be gone. Tasks of one loop and the same modes run one at a time, as on an actor.
    /// On the loop's thread; O(1).
    ///
    /// - Parameters:
    ///   - name: a name for traces and reports.
    ///   - priority: the task's priority; the loop runs jobs in order of arrival.
    ///   - modes: the modes in which the task runs. The default is the common modes.
    ///   - operation: the body of the task.
    /// - Returns: the task, which can be cancelled or awaited.
    @discardableResult
    public func task<Success: Sendable>(
        name: String? = nil, priority: TaskPriority? = nil, inModes modes: Modes = .common,
        _ operation: @escaping @isolated(any) () async throws -> Success, file: StaticString = #fileID,
        line: UInt32 = #line, function: StaticString = #function
    ) -> Task<Success, any Error> {
        let label = TaskLabel(name: name, origin: Origin(file: file, line: line), function: function)
        return start(label, priority, modes, operation.isolation, operation)
    }

    /// Starts a task that lives on the loop, and calls `completion` with its result: on the loop's thread, unless the
    /// loop has ended before the task. Otherwise like the method without `then`.
    ///
    /// ```swift
    /// loop.task { try await lookUp(name) } then: { result in table[name] = try? result.get() }
    /// ```
    @discardableResult
    public func task<Success: Sendable>(
        name: String? = nil, priority: TaskPriority? = nil, inModes modes: Modes = .common,
        _ operation: @escaping @isolated(any) () async throws -> Success,
        then completion: @escaping (Result<Success, any Error>) -> Void, file: StaticString = #fileID,
        line: UInt32 = #line, function: StaticString = #function
    ) -> Task<Void, any Error> {
        let label = TaskLabel(name: name, origin: Origin(file: file, line: line), function: function)
        return start(label, priority, modes, operation.isolation) {
            let result: Result<Success, any Error>
            do { result = .success(try await operation()) } catch { result = .failure(error) }
            completion(result)
        }
    }

    /// Starts a task of the loop, and runs the loop in the default mode until the task has ended: the `main` of an
    /// asynchronous program.
    ///
    /// ```swift
    /// @main struct Server {
    ///     static func main() throws {
    ///         RunLoop.main.serveMainActor()
    ///         try RunLoop.main.run { try await serve() }
    ///     }
    /// }
    /// ```
    ///
    /// A stop does not end this run; to end it, cancel the task. Within a job of such a task, or of another actor or
    /// task of ``RunLoop/Remote/executor(inModes:file:line:)`` in the common modes, the call traps: the task would come
    /// after that job, which waits for it. On the loop's thread.
    ///
    /// - Returns: the result of `operation`.
    /// - Throws: the error of `operation`; ``WaitError`` if the loop's ``LoopThread`` is to end, or if on virtual time
    ///   nothing can happen any more. The task is then cancelled.
    @available(*, noasync, message: "a run loop blocks its thread; start a task of the loop")
    public func run<Success: Sendable>(
        _ operation: @escaping @isolated(any) () async throws -> Success, file: StaticString = #fileID,
        line: UInt32 = #line, function: StaticString = #function
    ) throws -> Success {
        checkThatTaskCanEnd(isolation: operation.isolation)
        var result: Result<Success, any Error>?
        let task = task(
            operation,
            then: { [unowned self] in
                result = $0
                stop()
            }, file: file, line: line, function: function)
        while result == nil {
            let isStarved = run(in: .default) == .starved
            guard result == nil, isStarved || isEnding else { continue }
            task.cancel()
            throw isStarved ? WaitError.starved : remote.endError
        }
        return try result!.get()
    }

    /// Traps if a job on the stack holds back the jobs of a new task.
    private func checkThatTaskCanEnd(isolation: (any Actor)?) {
        let isHeldBack =
            remote.executor().jobs.queue.running != nil || isolation === MainActor.shared && isServingMainActor
        require(
            !isHeldBack,
            "a job of the loop runs the loop until a new task has ended; nothing can happen any more that would end the "
                + "wait, because the task comes after the job; await the task instead")
    }

    /// - Parameter place: the task's scope, and its number there.
    func start<Success: Sendable>(
        _ label: TaskLabel, _ priority: TaskPriority?, _ modes: Modes, _ isolation: (any Actor)?,
        _ operation: @escaping @isolated(any) () async throws -> Success, in place: (tasks: Tasks, number: Int)? = nil
    ) -> Task<Success, any Error> {
        checkThread()
        require(takesJobs, "a task was started on \(mailbox.loopDescription), which has ended")
        let scope = TaskScope(remote, within: place?.tasks.limit)
        let item = TaskItem(label, scope, in: place?.tasks)
        // Unsafe, but the task stays on the loop's thread, to which these belong.
        nonisolated(unsafe) let (ownItem, ownPlace, body, ended) = (
            item, place, operation, schedule?.taskBegins(named: label.name, at: label.origin)
        )
        let executor = remote.executor(inModes: modes).own
        let task = scope.bind {
            Task(name: label.name, executorPreference: executor, priority: priority) {
                defer {
                    ownItem.invalidate()
                    ended?()
                    ownPlace.map { $0.tasks.ended($0.number) }
                }
                return try await scope.run(body)
            }
        }
        scope.started(task.job, label)
        item.task = (cancel: { task.cancel() }, ended: { _ = await task.result })
        enrol(item, modes)
        if isolation === MainActor.shared { serveMainActor(forTasksIn: modes) }
        return task
    }

    /// Starts a task whose part before its first wait runs within the call: a handler that asks the program for an answer
    /// has most answers when the call returns. Such a task is neither an item of the loop nor a job that waits. Otherwise
    /// like ``task(name:priority:inModes:_:file:line:function:)``. On the loop's thread.
    ///
    /// - Parameter isolation: the isolation of `operation`: the main actor's, whose jobs run on this loop from then on, or
    ///   none.
    @_spi(Ports) public func taskAtOnce(
        name: String, inModes modes: Modes, isolation: (any Actor)?, origin: Origin,
        _ operation: nonisolated(nonsending) @escaping () async -> Void
    ) -> Task<Void, Never> {
        checkThread()
        require(takesJobs, "a task was started on \(mailbox.loopDescription), which has ended")
        let label = TaskLabel(name: name, origin: origin, function: "")
        let scope = TaskScope(remote, within: nil)
        // Once, because it is looked up by the modes.
        let executor = remote.executor(inModes: modes)
        let queue = executor.jobs.queue
        let ended = schedule?.taskBegins(named: name, at: origin)
        let isOnMainActor = isolation === MainActor.shared
        var item: TaskItem?
        var hasEnded = false
        // Unsafe, but the task stays on the loop's thread, to which these belong.
        nonisolated(unsafe) let body: nonisolated(nonsending) () async -> Void = {
            withUnsafeCurrentTask { task in
                let job = task!.job
                scope.begun(job)
                queue.began(job, by: isOnMainActor ? .mainActor : .own)
            }
            await scope.run(operation)
            hasEnded = true
            item?.invalidate()
            ended?()
        }
        let task = queue.runAtOnce(Callee(.task, name, origin), in: self) {
            scope.bind {
                if isOnMainActor { return Task.immediate(name: name) { @MainActor in await body() } }
                return Task.immediate(name: name, executorPreference: executor.own) { await body() }
            }
        }
        guard !hasEnded else { return task }
        TaskLabel.set(label, for: task.job)
        let made = TaskItem(label, scope, in: nil)
        made.task = (cancel: { task.cancel() }, ended: { _ = await task.result })
        item = made
        enrol(made, modes)
        return task
    }

    /// Cancels the tasks of the loop and waits until they have ended, including tasks that they have started meanwhile.
    /// Shielded tasks are not cancelled. On the loop's thread.
    package nonisolated(nonsending) func endTasks() async {
        while true {
            let items = untimed.all.compactMap { $0 as? TaskItem }
            guard !items.isEmpty else { return }
            for item in items where item.scope.deadline?.isShielded != true { item.task?.cancel() }
            for task in items.compactMap(\.task) { await task.ended() }
        }
    }
}

extension RunLoop.Remote {
    /// Runs `body` on the loop's thread, in one of `modes`, and returns its result.
    ///
    /// The calling task runs the body, so task-local values, priority and cancellation are its own. Any thread.
    ///
    /// - Throws: the error of `body`; `CancellationError` if the task was cancelled before `body` began; or
    ///   ``RunLoop/WaitError`` if the loop has ended.
    @discardableResult
    public func run<Success: Sendable>(
        inModes modes: RunLoop.Modes = .common, _ body: @Sendable (RunLoop) throws -> Success
    ) async throws -> Success {
        // Otherwise the task would come to the default executor.
        if hasEnded { throw await endErrorAfterTurn() }
        return try await withTaskExecutorPreference(executor(inModes: modes).own) {
            guard let loop = installed, !loop.hasEnded else { throw endError }
            try Task.checkCancellation()
            return try body(loop)
        }
    }
}

/// A task of the loop, which keeps its modes from being empty.
final class TaskItem: RunLoop.UntimedItem {
    var task: (cancel: @Sendable () -> Void, ended: @Sendable () async -> Void)?

    let scope: TaskScope
    /// The scope in which the task was started; `nil` if there was none.
    let tasks: RunLoop.Tasks?
    private let function: StaticString

    init(_ label: TaskLabel, _ scope: TaskScope, in tasks: RunLoop.Tasks?) {
        (self.scope, self.tasks, function) = (scope, tasks, label.function)
        super.init(origin: label.origin)
        if let name = label.name { self.name = name }
    }

    /// The function that started the task, if it has no name.
    override var detail: String? { name == nil ? "started in \(function)" : nil }

    override var kind: RunLoop.ItemKind { .task }
    override var hasHandler: Bool { task != nil }

    override func dropHandler(_ body: () -> Void) {
        task = nil
        body()
    }

    override func loopEnded() {
        task?.cancel()
        tasks?.loopEnded()
        task = nil
    }
}
