/// A task's wait for the call of a completion handler, on a loop's thread.
private final class CompletionWait<Value>: TaskWait, @unchecked Sendable {
    // Unchecked as in `TaskWait`.
    private var start: ((@escaping (Value) -> Void) -> () -> Void)?
    private var cancel: (() -> Void)?
    private var value: Value?
    private var isCancelling = false

    fileprivate static func value(
        of loop: RunLoop, isolation: isolated (any Actor)?, _ start: @escaping (@escaping (Value) -> Void) -> () -> Void
    ) async throws -> Value {
        let wait = CompletionWait(loop.remote)
        wait.start = start
        try await wait.wait()
        return wait.value!
    }

    override var purpose: String? { "waits for an operation to complete" }

    override func begin(in loop: RunLoop) {
        assert(start != nil && value == nil, "an operation begins twice")
        let call = Call(self)
        cancel = start?({ call.complete($0) })
        start = nil
    }

    override func cancelled(in loop: RunLoop) {
        isCancelling = !loop.hasEnded
        cancel?()
        cancel = nil
    }

    /// The object that the handler keeps alive.
    private final class Call {
        private let wait: CompletionWait

        init(_ wait: CompletionWait) {
            self.wait = wait
        }

        deinit {
            wait.cancel = nil
            wait.end(throwing: wait.isCancelling ? CancellationError() : wait.remote.endError)
        }

        func complete(_ value: Value) {
            guard wait.value == nil, !wait.isCancelling else { return }
            wait.value = value
            wait.end()
        }
    }
}

extension RunLoop {
    /// Calls `start` with a completion handler, and waits until that is called. Await it on the loop's thread.
    ///
    /// - Parameter start: begins an operation that ends with a call of the handler on the loop's thread, and returns a
    ///   closure that cancels it. If the handler is released uncalled, because the loop has ended, the wait throws an
    ///   error that says so.
    /// - Throws: `CancellationError` if the task is cancelled; `RunLoop.WaitError` if the loop has ended.
    @_spi(Ports) public func awaitCompletion<Value>(
        isolation: isolated (any Actor)? = #isolation, _ start: @escaping (@escaping (Value) -> Void) -> () -> Void
    ) async throws -> Value {
        if hasGone("this") { throw await remote.endErrorAfterTurn() }
        return try await CompletionWait.value(of: self, isolation: isolation, start)
    }
}
