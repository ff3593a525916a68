extension RunLoop {
    /// Why a run ended. The first four have CFRunLoop's numbers.
    public enum RunResult: Int32, Sendable, Hashable {
        /// The mode was empty or became empty: nothing is left to wait for.
        case finished = 1
        /// The run was stopped.
        case stopped = 2
        /// The limit was reached.
        case timedOut = 3
        /// A source was handled, and the run was to return after that.
        case handledSource = 4
        /// On virtual time only: there is something left to wait for, but nothing can ever happen any more.
        case starved = 5
    }
}
