extension RunLoop {
    /// The reason why a run ended. The first four have CFRunLoop's numbers.
    public enum RunResult: Int32, Sendable, Hashable {
        /// The mode was empty or became empty: nothing is left to wait for.
        case finished = 1
        /// The run was stopped.
        case stopped = 2
        /// The limit was reached.
        case timedOut = 3
        /// A source was handled, in a run that returns after handling one.
        case handledSource = 4
        /// Items are left to wait for, but nothing can happen any more. On virtual time only.
        case starved = 5
    }
}
