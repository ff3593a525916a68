public import RunLoopCore

extension Simulation {
    /// An error thrown by the program of a host: the fault of a simulation, unless the host may fail. `Sendable`.
    public struct HostFailure: Error, Sendable, CustomStringConvertible {
        /// The name of the host.
        public let host: String
        /// The time when its program threw.
        public let instant: RunLoop.Instant
        /// The error that ended it.
        public let error: any Error

        /// For example `host "server" failed at 1.500000000: bind: Address already in use (errno 98)`.
        public var description: String { "host \(quoted(host)) failed at \(instant): \(error)" }
    }
}
