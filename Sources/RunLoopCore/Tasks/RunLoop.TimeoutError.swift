extension RunLoop {
    /// The error when the deadline of a scope passed before its body and its tasks had ended. `Sendable`.
    ///
    /// The call that set the deadline throws it. Scopes within it throw `CancellationError` instead.
    public struct TimeoutError: Error, Sendable, CustomStringConvertible {
        /// The deadline, on the loop's clock.
        public let deadline: Instant

        /// The file and line that made the scope.
        public let origin: Origin

        /// The error of the body or of a task, after the deadline: `CancellationError`, or an error that says more,
        /// such as a cancelled write's.
        public let underlying: any Error

        /// The error in words, for example `the deadline 5.000000000 of the scope at App/main.swift:12 has passed`.
        public var description: String {
            let cause = underlying is CancellationError ? "" : ": \(underlying)"
            return "the deadline \(deadline) of the scope at \(origin) has passed\(cause)"
        }
    }
}

/// An error that may report the cancellation of a task together with other information. The library's own waits throw
/// `CancellationError` otherwise.
package protocol CancellationReport: Error {
    var isCancellation: Bool { get }
}

extension Error {
    /// Indicates whether the error reports the cancellation of a task.
    var saysCancelled: Bool { self is CancellationError || (self as? any CancellationReport)?.isCancellation == true }
}
