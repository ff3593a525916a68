internal import Glibc

/// The path of a Unix socket.
struct SocketPath {
    let path: String
    let address: Endpoint
    /// Whether a path on which no process answers is replaced.
    let replacesStale: Bool
    let system: any SystemCalls

    init(_ path: String, of address: Endpoint, replacesStale: Bool, _ system: any SystemCalls) {
        (self.path, self.address, self.replacesStale, self.system) = (path, address, replacesStale, system)
    }

    /// Binds to the path, which then has exactly the requested permissions.
    ///
    /// - Parameter probe: makes a socket of the same type for a family, to see whether a process answers.
    func bind(_ descriptor: Int32, permissions: UInt32, probe: (Int32) -> Int32) throws(SystemError) {
        guard permissions & ~0o777 == 0 else {
            throw SystemError("give \(path) the permissions \(String(permissions, radix: 8))", errno: EINVAL)
        }
        if replacesStale { try removeStaleSocket(probe) }
        // On Linux the path gets the permissions of the socket less those of the umask, so that it never has too many.
        // The umask itself belongs to the whole process, and must not change even for a moment.
        guard system.setPermissions(permissions, of: descriptor) == 0 else {
            throw .last("set the permissions of \(path)")
        }
        guard system.bind(descriptor, to: address) == 0 else { throw .last("bind to \(address)") }
        guard system.setPermissions(permissions, at: path) == 0 else {
            let error = SystemError.last("set the permissions of \(path)")
            _ = system.removeFile(at: path)
            throw error
        }
    }

    /// Removes a stale socket. A file that is no socket stays, and so does a socket on which a process answers.
    private func removeStaleSocket(_ probe: (Int32) -> Int32) throws(SystemError) {
        guard let file = system.socketFile(at: path) else { return }
        let probe = probe(AF_UNIX)
        guard probe >= 0 else { throw .last("open a socket for \(address)") }
        defer { system.close(probe) }
        guard system.connect(probe, to: address) != 0, errno == ECONNREFUSED else { return }
        system.remove(file, at: path)
    }
}
