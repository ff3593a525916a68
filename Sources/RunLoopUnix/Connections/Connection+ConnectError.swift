extension Connection {
    /// A failure to connect to a host; with ``Retry``, the failure of the last try. A value and `Sendable`.
    public enum ConnectError: Error, Sendable, Equatable, CustomStringConvertible {
        /// The look-up of the host's name failed, or found no address.
        case lookup(HostResolver.LookupError)
        /// All attempts to connect failed, with the errors of the tried addresses, at least one, in the order of
        /// failure. Attempts pending at the timeout come last, with `ETIMEDOUT`.
        case addresses([SystemError])

        /// The failure in one line, with the name or with each tried address.
        public var description: String {
            switch self {
            case .lookup(let failure): "look up \(failure)"
            case .addresses(let errors): errors.map(\.description).joined(separator: "; ")
            }
        }
    }
}
