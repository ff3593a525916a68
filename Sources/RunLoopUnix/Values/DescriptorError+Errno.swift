internal import Glibc
internal import RunLoopKit

extension DescriptorError {
    /// The system's error number for the error.
    var systemErrno: Int32 { if case .system(_, let errno) = self { errno } else { EBADF } }
}
