/// What a child is made of, as a system takes it.
package struct ChildStart {
    /// What one of its standard descriptors is.
    package enum Stream {
        case inherit
        case null
        case descriptor(Int32)
        /// For the standard error: what the standard output is.
        case standardOutput
    }

    /// The files that may be its program, in order.
    package var files: [String]
    /// The program's own name comes first.
    package var arguments: [String]
    /// Lines such as `HOME=/root`, each with a zero at its end. Bytes, because what is inherited need not be text.
    package var environment: [[CChar]]
    package var workingDirectory: String?
    package var streams: [Stream]
    package var group: ChildProcess.Group
    package var user: ChildProcess.User?
    package var limits: [ChildProcess.Resource: UInt64]

    /// What is done, in this order, before the other program runs.
    package enum Step {
        case fork, streams, group, limits, user, directory, execute
    }

    /// The step that has failed, and the system's reason.
    package struct Failure: Error {
        package let step: Step
        package let errno: Int32

        package init(_ step: Step, errno: Int32) {
            (self.step, self.errno) = (step, errno)
        }
    }
}

/// What a process knows of its child.
package enum ChildState {
    case running
    case ended(ChildProcess.ExitStatus)
    /// It has no such child any more.
    case unknown
}
