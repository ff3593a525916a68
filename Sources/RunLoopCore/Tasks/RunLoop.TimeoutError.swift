extension RunLoop {
    /// The deadline of a scope passed before its body and its tasks had ended. `Sendable`.
    ///
    /// It is thrown by the call that set the deadline, and by no scope within it: a deadline further out shows there as
    /// `CancellationError`.
    public struct TimeoutError: Error, Sendable, CustomStringConvertible {
        /// The deadline, on the loop's clock.
        public let deadline: Instant

        /// Where the scope was made.
        public let origin: Origin

        /// The error of the body or of a task, after the deadline: `CancellationError` unless it says more, as a cancelled
        /// write does.
        public let underlying: any Error

        /// For example `the deadline 5.000000000 of the scope at App/main.swift:12 has passed`.
        public var description: String {
            let cause = underlying is CancellationError ? "" : ": \(underlying)"
            return "the deadline \(deadline) of the scope at \(origin) has passed\(cause)"
        }
    }
}

/// An error that may say that a task was cancelled, besides more. The library's own waits throw `CancellationError`
/// otherwise.
package protocol CancellationReport: Error {
    var isCancellation: Bool { get }
}

extension Error {
    /// Whether it says that a task was cancelled.
    var saysCancelled: Bool { self is CancellationError || (self as? any CancellationReport)?.isCancellation == true }
}
