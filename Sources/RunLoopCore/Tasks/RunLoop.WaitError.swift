extension RunLoop {
    /// Why a wait for something of a loop ended without it. `Sendable`.
    public enum WaitError: Error, Sendable, Hashable, CustomStringConvertible {
        /// The loop has ended. The name is that of its ``LoopThread``.
        case loopEnded(loop: String?)
        /// On virtual time: nothing can ever happen any more. For example, a thread waits for a block
        /// in a mode in which no loop runs.
        case starved
        /// The thread of the loop `caller` was to wait for `loop`, whose thread waits for `caller` itself, or for a loop that
        /// does. The names are those of the loops' ``LoopThread``, or `main`.
        case deadlock(caller: String?, loop: String?)
        /// Another task waits for the same already: the text says for what.
        case alreadyWaiting(String)

        public var description: String {
            switch self {
            case .loopEnded(let name): "\(Self.words(name)) has ended"
            case .starved: "nothing can happen any more that would end the wait"
            case .deadlock(let caller, let loop):
                "\(Self.words(caller)) was to wait for \(Self.words(loop)), which waits for it in turn; let one of the two "
                    + "post its block, and not wait"
            case .alreadyWaiting(let what): "another task waits for \(what) already; let one task do that"
            }
        }

        private static func words(_ name: String?) -> String { "the run loop\(name.map { " \(quoted($0))" } ?? "")" }
    }
}

extension RunLoop.Remote {
    /// Whether the loop has ended. Any thread.
    package var hasEnded: Bool { installedReference?.with { $0.hasEnded } ?? mailbox.isClosed }

    /// The error that ends waits after the end of the loop.
    package var endError: RunLoop.WaitError { .loopEnded(loop: mailbox.name) }

    /// The same after a suspension. A task that swallows the error and tries again then takes turns, to which the end of a
    /// loop sets a limit; without any it would keep its thread for ever.
    package nonisolated(nonsending) func endErrorAfterTurn() async -> RunLoop.WaitError {
        try? await NamedWait(self, "learns of the end of its loop").wait()
        return endError
    }
}
