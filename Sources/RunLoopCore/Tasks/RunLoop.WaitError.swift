extension RunLoop {
    /// Why a wait for something of a loop ended without it. `Sendable`.
    public enum WaitError: Error, Sendable, Hashable, CustomStringConvertible {
        /// The loop has ended. The name is that of its ``LoopThread``.
        case loopEnded(loop: String?)
        /// On virtual time: nothing can ever happen any more. For example, two threads wait for each other.
        case starved
        /// Another task waits for the same already: the text says for what.
        case alreadyWaiting(String)

        public var description: String {
            switch self {
            case .loopEnded(let name): "the run loop\(name.map { " \(quoted($0))" } ?? "") has ended"
            case .starved: "nothing can happen any more that would end the wait"
            case .alreadyWaiting(let what): "another task waits for \(what) already; let one task do that"
            }
        }
    }
}

extension RunLoop.Remote {
    /// The error that ends waits after the end of the loop.
    package var endError: RunLoop.WaitError { .loopEnded(loop: mailbox.name) }
}
