extension RunLoop {
    /// Tasks that end before the call of ``RunLoop/withTasks(until:isolation:_:file:line:function:)`` that made this
    /// returns, and their scope, which cancels them together.
    ///
    /// The object belongs to the loop's thread and is not `Sendable`.
    public final class Tasks {
        private enum Reason {
            case program, deadline, failure, caller
        }

        private struct State {
            var members: [Int: Member] = [:]
            var lastNumber = 0
            /// The reason why everything was cancelled.
            var reason: Reason?
            /// The first error not caused by cancellation.
            var failure: (any Error)?
            /// The error of a member that ended because it was cancelled.
            var cut: (any Error)?
            var hasEnded = false
        }

        /// The file and line that made the scope.
        public var origin: Origin { label.origin }

        private let label: TaskLabel
        private let loop: RunLoop
        private let modes: Modes
        /// The deadline, within the deadlines of the calling task's scope.
        let limit: ScopeDeadline
        // Locked, because a task that outlives the loop runs on another thread.
        private let state = Locked(State())
        private let end: End
        private var call: DelayedCall?

        init(on loop: RunLoop, until deadline: Instant, isShield: Bool = false, _ label: TaskLabel) {
            require(
                loop.isInstalled,
                "a scope is made on the loop's thread: in a task of the loop, or in one that prefers its executor")
            (self.loop, self.label) = (loop, label)
            modes = loop.remote.runningJobs?.with { $0.modes } ?? .common
            let outer = TaskScope.ofRunningTask(on: loop.remote)?.deadline
            limit = ScopeDeadline(on: loop, at: deadline, within: outer, isShield: isShield)
            end = End(loop.remote)
        }

        // MARK: Tasks

        /// Starts a task that the scope waits for. The task begins in the next pass, never at once; in a cancelled
        /// scope it is cancelled before it begins. Tasks may start further ones. On the loop's thread; O(1).
        ///
        /// ```swift
        /// let sum = try await loop.withTasks { tasks in
        ///     let left = tasks.start { try await first.number() }
        ///     let right = tasks.start { try await second.number() }
        ///     return try await left.value + right.value
        /// }
        /// ```
        ///
        /// - Parameters:
        ///   - name: a name for traces and reports.
        ///   - operation: the code of the task. It is isolated as the caller, and may use everything that the caller
        ///     may.
        /// - Returns: the task, which has the value and can be cancelled alone.
        /// - Precondition: the scope has not ended.
        @discardableResult
        public func start<Success>(
            name: String? = nil, isolation: (any Actor)? = #isolation,
            _ operation: @escaping () async throws -> Success, file: StaticString = #fileID, line: UInt32 = #line,
            function: StaticString = #function
        ) -> Child<Success> {
            let child = Child<Success>(loop.remote)
            let label = TaskLabel(name: name, origin: Origin(file: file, line: line), function: function)
            add(child.member, label, isolation) { await child.run(operation) }
            return child
        }

        private func add(
            _ member: Member, _ label: TaskLabel, _ isolation: (any Actor)?,
            _ operation: @escaping @isolated(any) () async -> Void
        ) {
            let number = state.withLock { state in
                require(
                    !state.hasEnded,
                    "a task was started in the scope of \(self.origin), which has ended; start it before that, or with "
                        + "the loop's task(_:)")
                state.lastNumber += 1
                state.members[state.lastNumber] = member
                return state.lastNumber
            }
            member.task = loop.start(label, nil, modes, isolation, operation, in: (self, number))
            if isCancelled { member.task?.cancel() }
        }

        /// Notes that a task has ended. Usually on the loop's thread.
        func ended(_ number: Int) {
            if loop.isInstalled { limit.notice() }
            let (isLast, waits, hasFailed) = state.withLock { state in
                let member = state.members.removeValue(forKey: number)!
                return (state.members.isEmpty, member.waits, note(member, in: &state))
            }
            // First, because the cancellation ends all other waits.
            for wait in waits { wait.end() }
            if hasFailed { cancel(.failure) }
            if isLast { end.end() }
        }

        /// - Returns: whether everything is to be cancelled because of the member's error.
        private func note(_ member: Member, in state: inout State) -> Bool {
            guard let error = member.error, state.failure == nil else { return false }
            if error.saysCancelled {
                if state.reason != nil {
                    if state.cut == nil || state.cut is CancellationError { state.cut = error }
                    return false
                }
                if member.isCancelled { return false }
            }
            state.failure = error
            return state.reason == nil
        }

        // MARK: Cancelling

        /// A Boolean value that indicates whether the scope has been cancelled: by the program, by its deadline, by the
        /// first error, or with its caller.
        public var isCancelled: Bool { state.withLock { $0.reason != nil } }

        /// Cancels the body and all tasks, also tasks that are started later. `CancellationError` of a task is then no
        /// failure; the scope returns the value of its body, if there is one. Harmless when repeated. On the loop's
        /// thread; O(number of tasks).
        public func cancel() {
            loop.checkThread()
            limit.notice()
            cancel(.program)
        }

        private func cancel(_ reason: Reason) {
            let tasks: [Task<Void, any Error>] = state.withLock { state in
                guard state.reason == nil, !state.hasEnded else { return [] }
                state.reason = reason
                return state.members.ordered { $0.key < $1.key }.compactMap(\.value.task)
            }
            for task in tasks { task.cancel() }
        }

        /// The date at which everything is cancelled, on the loop's clock; ``RunLoop/Instant/distantFuture`` for never.
        /// The deadline can be moved as long as it has not passed. On the loop's thread; O(log n).
        public var deadline: Instant {
            get { limit.date }
            set {
                loop.checkThread()
                limit.notice()
                guard !isCancelled else { return }
                limit.date = newValue
                watchDeadline()
            }
        }

        private static let label = CallLabel("deadline")

        private func watchDeadline() {
            call?.cancel()
            call = nil
            guard deadline < .distantFuture, state.withLock({ $0.reason == nil && !$0.hasEnded }) else { return }
            guard deadline > loop.now else { return cancel(.deadline) }
            call = loop.perform(at: deadline, inModes: modes, label: Self.label, origin: origin) { [self] in
                call = nil
                cancel(.deadline)
            }
        }

        // MARK: The scope

        func run<Success>(
            isolation: isolated (any Actor)? = #isolation, _ body: (Tasks) async throws -> Success
        ) async throws -> Success {
            // Unsafe, but none of it leaves the loop's thread.
            nonisolated(unsafe) let (tasks, body) = (self, body)
            return try await withoutActuallyEscaping(body) { body in
                nonisolated(unsafe) let (child, body) = (Child<Success>(loop.remote), body)
                add(child.member, label, isolation) { await child.run(body, in: tasks) }
                watchDeadline()
                await join()
                return try result(of: child)
            }
        }

        /// Waits until all tasks have ended, even if the loop ends first.
        private func join(isolation: isolated (any Actor)? = #isolation) async {
            limit.passed = { [unowned self] in cancel(.deadline) }
            if !limit.isShield {
                end.cancelled = { [unowned self] in cancel(.caller) }
                if Task.isCancelled { cancel(.caller) }
            }
            defer { (end.cancelled, limit.passed) = (nil, nil) }
            while let task = state.withLock({ $0.members.values.first?.task }) {
                do { try await end.wait() } catch {
                    // The loop has ended, and the remaining tasks run elsewhere.
                    _ = await task.result
                }
            }
            call?.cancel()
            call = nil
            state.withLock { state in
                assert(state.members.isEmpty && !state.hasEnded, "a scope ends twice, or before its tasks")
                state.hasEnded = true
            }
            if loop.isInstalled { limit.outer?.notice() }
        }

        private func result<Success>(of body: Child<Success>) throws -> Success {
            let (reason, failure, cut) = state.withLock { ($0.reason, $0.failure, $0.cut) }
            // If the caller is cancelled, an outer scope reports the reason.
            let isTimeout = reason == .deadline && (limit.isShield || !Task.isCancelled)
            if let error = failure ?? cut, isTimeout {
                throw TimeoutError(deadline: deadline, origin: origin, underlying: error)
            }
            if let failure { throw failure }
            let value = try body.result!.get()
            if cut != nil && reason != .program { throw CancellationError() }
            return value
        }

        /// The tasks that wait for each member: for its value, or for the end of all.
        var awaiters: [(member: UnownedJob, awaiters: [UnownedJob])] {
            state.withLock { state in
                state.members.ordered { $0.key < $1.key }.compactMap { _, member in
                    member.task.map { ($0.job, (member.waits + [end]).compactMap(\.waiter)) }
                }
            }
        }

        /// Ends the waits for these tasks, at the end of the loop.
        func loopEnded() {
            let waits = state.withLock { $0.members.ordered { $0.key < $1.key }.flatMap(\.value.waits) }
            for wait in waits + [end] { wait.end(throwing: loop.remote.endError) }
        }

        /// The wait for all tasks. Cancellation is forwarded to them and does not end it.
        private final class End: TaskWait, @unchecked Sendable {
            // Unchecked as in `TaskWait`.
            var cancelled: (() -> Void)?

            override var outlastsCancellation: Bool { true }

            override func cancelled(in loop: RunLoop) { cancelled?() }
        }
    }
}

@available(*, unavailable, message: "a scope belongs to its loop's thread; cancel the task that made it instead")
extension RunLoop.Tasks: Sendable {}
