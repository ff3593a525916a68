internal import Glibc
internal import RunLoopKit

/// The error of a failed system call.
public struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The operation that failed, for example `bind to port 80`.
    public let operation: String
    /// The system's error number, for example `EADDRINUSE`.
    public let errno: Int32

    /// Creates an error from an operation and an error number.
    public init(_ operation: String, errno: Int32) {
        self.operation = operation
        self.errno = errno
    }

    /// Returns the error of the system call that has just failed.
    static func last(_ operation: String) -> SystemError {
        SystemError(operation, errno: Glibc.errno)
    }

    public var description: String {
        "\(operation): \(String(cString: strerror(errno))) (errno \(errno))"
    }
}

extension DescriptorError {
    /// The system's error number for the error.
    var systemErrno: Int32 { if case .system(_, let errno) = self { errno } else { EBADF } }
}
