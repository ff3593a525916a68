/// The description of a new child, in the form that a system accepts.
package struct ChildStart {
    package enum Stream {
        case inherit
        case null
        case descriptor(Int32)
        /// The target of the standard output; for the standard error only.
        case standardOutput
    }

    /// The candidates for the program, in order.
    package var files: [String]
    /// The arguments, beginning with the program's own name.
    package var arguments: [String]
    /// Lines such as `HOME=/root`, each with a terminating zero byte. Stored as bytes, because inherited variables need
    /// not be text.
    package var environment: [[CChar]]
    package var workingDirectory: String?
    package var streams: [Stream]
    package var group: ChildProcess.Group
    package var user: ChildProcess.User?
    package var limits: [ChildProcess.Resource: UInt64]

    /// The steps of starting a child, in order, with the numbers that `rlk_spawn` uses.
    package enum Step: Int32 {
        case fork, streams, group, limits, user, directory, execute
    }

    package struct Failure: Error {
        package let step: Step
        package let errno: Int32

        package init(_ step: Step, errno: Int32) {
            (self.step, self.errno) = (step, errno)
        }
    }
}
