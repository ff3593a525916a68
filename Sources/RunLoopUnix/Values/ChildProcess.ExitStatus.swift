extension ChildProcess {
    /// The way in which a child process has ended.
    public enum ExitStatus: Hashable, Sendable, CustomStringConvertible {
        /// The child exited with a code from 0 to 255; 0 means success.
        case exited(Int32)
        /// A signal ended the child.
        case signalled(Signal, coreDumped: Bool)
        /// The child ended in an unknown way, because other code reaped it, for example with `waitpid(-1, …)`, or the
        /// system did, because the process ignores SIGCHLD.
        case lost

        /// A Boolean value that indicates whether the child exited with the code 0.
        public var isSuccess: Bool { self == .exited(0) }

        public var description: String {
            switch self {
            case .exited(let code): "exited with code \(code)"
            case .signalled(let signal, coreDumped: false): "ended by \(signal)"
            case .signalled(let signal, coreDumped: true): "ended by \(signal), core dumped"
            case .lost: "ended; other code has taken its status"
            }
        }
    }
}
