extension Connection {
    /// Why there is no connection to a host; with ``Retry``, why the last try has failed. A value and `Sendable`.
    public enum ConnectError: Error, Sendable, Equatable, CustomStringConvertible {
        /// The host's name could not be looked up, or has no address.
        case lookup(HostResolver.Failure)
        /// No address could be connected to. The errors of those that were tried, at least one, in the order in which
        /// they failed; `ETIMEDOUT` for those that were under way when the timeout had passed, which come last.
        case addresses([SystemError])

        /// What happened, in one line: with the name, or with each address that was tried.
        public var description: String {
            switch self {
            case .lookup(let failure): "look up \(failure)"
            case .addresses(let errors): errors.map(\.description).joined(separator: "; ")
            }
        }
    }
}
