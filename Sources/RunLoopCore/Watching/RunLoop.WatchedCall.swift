extension RunLoop {
    /// A call of a handler, as a ``LoopWatcher`` sees it. A value and `Sendable`.
    @_spi(Ports) public struct WatchedCall: Sendable {
        /// The handler.
        public let callee: Callee
        /// The mode in which the loop runs.
        public let mode: Mode
        /// The time when the call began, on the loop's clock.
        public let begin: Instant
    }

    /// The reason why a sleep of the loop has ended, as a ``LoopWatcher`` sees it. A value and `Sendable`.
    @_spi(Ports) public enum WakeUpReason: Sendable {
        /// An item is due, or the run has reached its limit.
        case date
        /// A source's descriptor is ready.
        case source(Callee)
        /// Another thread has posted something. The name is the system's, of at most 15 bytes.
        case thread(String)
        /// Another reason, for example a descriptor that is no longer watched.
        case other
    }
}
