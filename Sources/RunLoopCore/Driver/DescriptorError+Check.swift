internal import Glibc

extension DescriptorError {
    /// Throws if a descriptor cannot be waited for, for the reasons that every driver has in common.
    package static func check(_ descriptor: Int32) throws(DescriptorError) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            throw errno == EBADF ? .notOpen(descriptor) : .system(descriptor, errno: errno)
        }
        let kind = status.st_mode & S_IFMT
        if kind == S_IFREG || kind == S_IFDIR { throw .notPollable(descriptor) }
    }
}
