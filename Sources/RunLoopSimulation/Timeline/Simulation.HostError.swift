@_spi(Ports) public import RunLoopCore

extension Simulation {
    /// An error thrown by the program of a host: the fault of a simulation if the host may not fail. `Sendable`.
    public struct HostError: Error, Sendable, CustomStringConvertible {
        /// The name of the host.
        public let host: String
        /// The time when the host's program threw.
        public let instant: RunLoop.Instant
        /// The error that ended the program.
        public let error: any Error

        /// For example `host "server" failed at 1.500000000: bind: Address already in use (errno 98)`.
        public var description: String { "host \(quoted(host)) failed at \(instant): \(error)" }
    }
}

/// The error of a program whose task does not end with its loop.
struct EndlessTask: Error, CustomStringConvertible {
    let task: String

    var description: String {
        "\(task) continues for ever after the end of its loop: it swallows the errors of its waits; return on them"
    }
}
