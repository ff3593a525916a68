internal import Glibc

/// The exclusive right to place a socket at a path: the lock of a file beside the path.
///
/// Between checking for a stale socket and listening, no other process may consider the path stale.
struct PathClaim: ~Copyable {
    private let system: any SystemCalls
    private let file: String
    private let descriptor: Int32

    /// - Throws: ``SystemError`` with `EADDRINUSE` if another process has the right, because it will have the path.
    init(_ path: String, _ system: any SystemCalls) throws(SystemError) {
        let file = path + ".claim"
        while true {
            // Only the owner can open the file, so that no other user can block a start.
            let descriptor = system.open(file, flags: O_RDWR | O_CREAT)
            guard descriptor >= 0 else { throw .last("bind to \(path)") }
            if system.lock(descriptor) == 0 {
                if system.leads(file, to: descriptor) {
                    (self.system, self.file, self.descriptor) = (system, file, descriptor)
                    return
                }
                // The former owner has removed the file meanwhile.
                system.release(descriptor, unlocking: true)
            } else {
                let reason = errno == EWOULDBLOCK ? EADDRINUSE : errno
                system.close(descriptor)
                throw SystemError("bind to \(path), at which another process begins to listen", errno: reason)
            }
        }
    }

    deinit {
        // Removed while it is locked: whoever locks a file of this name is its only owner.
        _ = system.removeFile(at: file)
        system.release(descriptor, unlocking: true)
    }
}
