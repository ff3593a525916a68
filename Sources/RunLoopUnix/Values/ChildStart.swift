/// The description of a new child, in the form that a system accepts.
@_spi(Ports) public struct ChildStart {
    public enum Stream {
        case inherit
        case null
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
    public var workingDirectory: String?
    public var streams: [Stream]
    public var group: ChildProcess.Group
    public var user: ChildProcess.User?
    public var limits: [ChildProcess.Resource: UInt64]

    /// The steps of starting a child, in order, with the numbers that `rlk_spawn` uses.
    public enum Step: Int32, Sendable {
        case fork, streams, group, limits, user, directory, execute
    }

    public struct Failure: Error {
        public let step: Step
        public let errno: Int32

        public init(_ step: Step, errno: Int32) {
            (self.step, self.errno) = (step, errno)
        }
    }
}
