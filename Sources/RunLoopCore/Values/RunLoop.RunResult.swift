extension RunLoop {
    /// Why a run ended; the first four with CFRunLoop's numbers.
    public enum RunResult: Int32, Sendable, Hashable {
        /// The mode was empty, or has become so: nothing is left to wait for.
        case finished = 1
        /// Somebody asked for it.
        case stopped = 2
        /// The limit has been reached.
        case timedOut = 3
        /// A source was handled, and the run was to return then.
        case handledSource = 4
        /// On virtual time only: there is something left to wait for, but nothing can ever happen any more.
        case starved = 5
    }
}
