extension RunLoop {
    /// The reason why a wait on a loop ended early. `Sendable`.
    public enum WaitError: Error, Sendable, Hashable, CustomStringConvertible {
        /// The loop, named by its ``LoopThread``, has ended.
        case loopEnded(loop: String?)
        /// Nothing can happen any more. For example, a thread waits for a block in a mode in which no loop runs. On
        /// virtual time only.
        case starved
        /// The thread of the loop `caller` was to wait for `loop`, whose thread waits for `caller` itself, or for a
        /// loop that does. The names are the loops' ``LoopThread`` names, or `main`.
        case deadlock(caller: String?, loop: String?)
        /// Another task waits for the same object already, which the text names.
        case alreadyWaiting(String)

        public var description: String {
            switch self {
            case .loopEnded(let name): "\(Self.words(name)) has ended"
            case .starved: "nothing can happen any more that would end the wait"
            case .deadlock(let caller, let loop):
                "\(Self.words(caller)) cannot wait for \(Self.words(loop)), which waits for it in turn; "
                    + "post one of the two blocks without waiting"
            case .alreadyWaiting(let what): "another task already waits for \(what); wait in one task only"
            }
        }

        private static func words(_ name: String?) -> String { "the run loop\(name.map { " \(quoted($0))" } ?? "")" }
    }
}

extension RunLoop.Remote {
    /// Indicates whether the loop has ended. Any thread.
    var hasEnded: Bool { installedReference?.with { $0.hasEnded } ?? mailbox.isClosed }

    /// The error that ends waits after the end of the loop.
    package var endError: RunLoop.WaitError { .loopEnded(loop: mailbox.name) }
}
