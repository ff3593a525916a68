internal import Glibc

/// The reason why a descriptor cannot be watched. `Sendable`.
public enum DescriptorError: Error, Equatable, CustomStringConvertible {
    /// The descriptor is not open: it was closed, or never opened.
    case notOpen(Int32)
    /// The descriptor is open, but its kind is always ready and cannot be waited for: a regular file or a directory.
    case notPollable(Int32)
    /// The system reports another error, with its `errno`.
    case system(Int32, errno: Int32)

    public var description: String {
        switch self {
        case .notOpen(let descriptor):
            "descriptor \(descriptor) is not open; add a source before its descriptor is closed"
        case .notPollable(let descriptor):
            "descriptor \(descriptor) is a regular file or directory, which is always ready; read it directly"
        case .system(let descriptor, let errno):
            "descriptor \(descriptor) cannot be watched: errno \(errno)"
        }
    }

    /// Throws if no driver can wait for the descriptor.
    @_spi(Ports) public static func check(_ descriptor: Int32) throws(DescriptorError) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            throw errno == EBADF ? .notOpen(descriptor) : .system(descriptor, errno: errno)
        }
        let kind = status.st_mode & S_IFMT
        if kind == S_IFREG || kind == S_IFDIR { throw .notPollable(descriptor) }
    }
}
