/// The description of a new child, in the form that a system accepts.
@_spi(Ports) public struct ChildStart {
    /// The target of one of the child's descriptors.
    public enum Stream {
        /// The same descriptor as the parent's.
        case inherit
        /// `/dev/null`.
        case null
        /// A descriptor of the parent.
        case descriptor(Int32)
        /// The target of the standard output; for the standard error only.
        case standardOutput
    }

    /// The candidates for the program, in order.
    public var files: [String]
    /// The arguments, beginning with the program's own name.
    public var arguments: [String]
    /// Lines such as `HOME=/root`, each with a terminating zero byte. Stored as bytes, because inherited variables need
    /// not be text.
    public var environment: [[CChar]]
    /// The child's directory; `nil` for the parent's.
    public var workingDirectory: String?
    /// The targets of the child's descriptors, from 0.
    public var streams: [Stream]
    /// The process group of the child.
    public var group: ChildProcess.Group
    /// The user that the child runs as; `nil` for the parent's.
    public var user: ChildProcess.User?
    /// The limits of the child, where they are not the parent's.
    public var limits: [ChildProcess.Resource: UInt64]

    /// The steps of starting a child, in order, with the numbers that `rlk_spawn` uses.
    public enum Step: Int32, Sendable {
        /// The steps, as their names say.
        case fork, streams, group, limits, user, directory, execute
    }

    /// The reason why a child has not started.
    public struct Failure: Error {
        /// The step that failed.
        public let step: Step
        /// The system's reason.
        public let errno: Int32

        /// Creates the reason from its parts.
        public init(_ step: Step, errno: Int32) {
            (self.step, self.errno) = (step, errno)
        }
    }
}
