extension RunLoop {
    /// The reason why another loop cannot poll this one. `Sendable`.
    public enum GuestError: Error, Equatable, CustomStringConvertible {
        /// No system waits for the loop: it is simulated, recorded or replayed.
        case noSystem
        /// `/proc/self/fdinfo` does not show which descriptor the loop waits on.
        case notFound

        public var description: String {
            switch self {
            case .noSystem: "no descriptor reports for a loop that is simulated, recorded or replayed"
            case .notFound: "/proc/self/fdinfo does not show the descriptor that the loop waits on"
            }
        }
    }
}
