internal import Glibc

extension RunLoop {
    /// The error when the system refuses a descriptor or a thread that a loop needs to start. `Sendable`.
    ///
    /// `LoopGroup`, `Console` and `withLoop` throw it. A start that throws nothing, such as a ``LoopThread``'s, ends
    /// the process instead, with this description on standard error and the status 71 (`EX_OSERR`).
    public struct StartError: Error, Sendable, Hashable, CustomStringConvertible {
        /// The refused operation, for example `start the thread "worker"`.
        public let operation: String
        /// The system's error number, for example `EMFILE` or `EAGAIN`.
        public let errno: Int32

        init(_ operation: String, errno: Int32) {
            (self.operation, self.errno) = (operation, errno)
        }

        /// Creates the error of the system call that has just failed.
        @_spi(Ports) public static func last(_ operation: String) -> StartError {
            StartError(operation, errno: Glibc.errno)
        }

        public var description: String {
            "cannot \(operation): \(String(cString: strerror(errno))) (errno \(errno))"
        }
    }
}

/// Returns the result of `start`, or ends the process as ``endProcess(_:)`` does if the system refuses it.
@_spi(Ports) public func started<Result>(_ start: () throws(RunLoop.StartError) -> Result) -> Result {
    do { return try start() } catch { endProcess(error) }
}

/// Ends the process with a sentence on standard error and the status 71, `EX_OSERR`. No `atexit` handler is called,
/// because the caller may hold a lock that the handler needs.
package func endProcess(_ error: RunLoop.StartError) -> Never {
    let text = "RunLoopKit: \(error)\n"
    _ = write(STDERR_FILENO, text, text.utf8.count)
    _exit(71)
}
