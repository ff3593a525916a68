extension Exploration {
    /// What is wrong with a run. A value and `Sendable`.
    public struct Fault: Sendable, Hashable, CustomStringConvertible {
        /// The kinds of faults.
        public enum Kind: String, Sendable, Hashable {
            /// The program has thrown an error, or an expectation of a test has failed.
            case expectation
            /// The program of a host has thrown an error, and the host was not one that may fail.
            case failure
            /// The process has ended: a precondition has failed, or memory was touched that was not to be.
            case trap
            /// The run has not ended in the time that it may take.
            case hang
            /// Nothing can happen any more, and a task waits.
            case deadlock
            /// A task of a loop has not ended, though it was cancelled and its loop has ended.
            case leak
            /// A timer fired too late.
            case starvation
            /// Something has left the simulation, so that the run may be another one each time.
            case escape
            /// The same schedule gave another run.
            case difference
        }

        public let kind: Kind

        /// What is wrong, as a sentence.
        public let description: String

        init(_ kind: Kind, _ description: String) {
            self.kind = kind
            self.description = description
        }
    }
}

typealias Fault = Exploration.Fault
