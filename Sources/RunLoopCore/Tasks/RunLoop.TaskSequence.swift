extension RunLoop {
    /// A sequence whose elements a task awaits on its loop's thread, such as the lines of a connection.
    ///
    /// The sequence is its own iterator: each element goes to the task that asks first, and one task at a time may
    /// wait. A sequence belongs to the loop's thread and is not `Sendable`.
    public struct TaskSequence<Element>: AsyncSequence, AsyncIteratorProtocol {
        private let nextElement: nonisolated(nonsending) () async throws -> Element?

        package init(_ next: nonisolated(nonsending) @escaping () async throws -> Element?) {
            nextElement = next
        }

        /// Returns the sequence itself.
        public func makeAsyncIterator() -> TaskSequence { self }

        /// Waits for the next element; `nil` if there will be none. On the loop's thread.
        ///
        /// - Throws: `CancellationError`; ``WaitError`` if another task waits, or if the loop has ended; and the errors
        ///   that the origin of the sequence names.
        public func next(isolation: isolated (any Actor)? = #isolation) async throws -> Element? {
            try await nextElement()
        }
    }
}

@available(*, unavailable, message: "a sequence belongs to the thread of its loop")
extension RunLoop.TaskSequence: Sendable {}
