internal import Glibc

/// The right to put a socket at a path, which one process has at a time: the lock of a file beside the path.
///
/// From the look at a stale socket to the call that listens, no other start may take the path for stale.
struct PathClaim: ~Copyable {
    private let system: any SystemCalls
    private let file: String
    private let descriptor: Int32

    /// - Throws: ``SystemError`` with `EADDRINUSE` if another start has the right, for one of them has the path then.
    init(_ path: String, _ system: any SystemCalls) throws(SystemError) {
        let file = path + ".claim"
        while true {
            // Only the owner can open it, so that no other user holds up a start.
            let descriptor = system.open(file, flags: O_RDWR | O_CREAT)
            guard descriptor >= 0 else { throw .last("bind to \(path)") }
            if system.lock(descriptor) == 0 {
                if system.leads(file, to: descriptor) {
                    (self.system, self.file, self.descriptor) = (system, file, descriptor)
                    return
                }
                // The former owner has removed it meanwhile.
                system.release(descriptor, unlocking: true)
            } else {
                let reason = errno == EWOULDBLOCK ? EADDRINUSE : errno
                system.close(descriptor)
                throw SystemError("bind to \(path), at which another process begins to listen", errno: reason)
            }
        }
    }

    deinit {
        // While it is locked: a file of this name that can be locked has no other owner.
        _ = system.removeFile(at: file)
        system.release(descriptor, unlocking: true)
    }
}
