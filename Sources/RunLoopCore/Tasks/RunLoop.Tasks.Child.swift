extension RunLoop.Tasks {
    /// A task of a scope, made by ``start(name:isolation:_:file:line:function:)``.
    ///
    /// A child belongs to the loop's thread and is not `Sendable`; its value need not be either.
    public final class Child<Success> {
        let member = Member()
        private(set) var result: Result<Success, any Error>?
        private let remote: RunLoop.Remote

        init(_ remote: RunLoop.Remote) {
            self.remote = remote
        }

        func run(_ operation: () async throws -> Success) async {
            do { end(with: .success(try await operation())) } catch { end(with: .failure(error)) }
        }

        /// Runs the body of a scope.
        func run(_ body: (RunLoop.Tasks) async throws -> Success, in tasks: RunLoop.Tasks) async {
            do { end(with: .success(try await body(tasks))) } catch { end(with: .failure(error)) }
        }

        private func end(with result: Result<Success, any Error>) {
            assert(self.result == nil, "a task ends twice")
            self.result = result
            if case .failure(let error) = result { member.error = error }
        }

        /// The value of the task, as soon as it has ended. Any number of tasks may wait. On the loop's thread.
        ///
        /// - Throws: the error of the task; `CancellationError` if the waiting task is cancelled, which does not cancel
        ///   this one; ``RunLoop/WaitError`` if the loop has ended.
        public nonisolated(nonsending) var value: Success {
            get async throws {
                if let result { return try result.get() }
                let wait = TaskWait(remote)
                member.waits.append(wait)
                defer { member.waits.removeAll { $0 === wait } }
                try await wait.wait()
                return try result!.get()
            }
        }

        /// Cancels this task alone. Its `CancellationError` is then no failure of its scope. Harmless when it has
        /// ended. On the loop's thread.
        public func cancel() {
            member.isCancelled = true
            member.task?.cancel()
        }
    }

    /// A scope's record of a task.
    final class Member {
        var task: Task<Void, any Error>?
        /// Set if the task was cancelled alone.
        var isCancelled = false
        var error: (any Error)?
        var waits: [TaskWait] = []
    }
}

@available(*, unavailable, message: "a task of a scope belongs to its loop's thread")
extension RunLoop.Tasks.Child: Sendable {}
