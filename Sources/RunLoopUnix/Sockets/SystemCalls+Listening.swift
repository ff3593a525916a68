internal import Glibc

extension SystemCalls {
    /// Opens a listening stream socket.
    func openListener(_ address: Endpoint, _ options: Listener.Options) throws(SystemError) -> Int32 {
        let descriptor = socket(address.family)
        guard descriptor >= 0 else { throw .last("open a socket for \(address)") }
        do throws(SystemError) {
            if address.family == AF_INET6 {
                setOption(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, options.isDualStack ? 0 : 1)
            }
            if address.filePath == nil {
                setOption(descriptor, SOL_SOCKET, SO_REUSEADDR, 1)
                if options.reusesPort { setOption(descriptor, SOL_SOCKET, SO_REUSEPORT, 1) }
                // Connections inherit the option.
                if options.hasNoDelay { setOption(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, 1) }
            }
            try bind(
                descriptor, to: address, permissions: options.permissions, replacesStale: options.replacesStalePath,
                probe: self.socket
            ) { () throws(SystemError) in
                guard listen(descriptor, backlog: options.backlog) == 0 else { throw .last("listen on \(address)") }
            }
            return descriptor
        } catch {
            close(descriptor)
            throw error
        }
    }

    /// Checks with a socket option that a foreign descriptor is a socket of the required kind.
    func check(
        _ descriptor: Int32, isA kind: String, _ option: Int32, is value: Int32, otherwise fault: String
    ) throws(SystemError) {
        guard let found = self.option(descriptor, SOL_SOCKET, option) else {
            throw .last("use descriptor \(descriptor) as a \(kind) socket")
        }
        guard found == value else {
            throw SystemError("descriptor \(descriptor) is a socket that \(fault)", errno: EINVAL)
        }
    }

    /// Binds a socket to an address. A path receives exactly the requested permissions.
    ///
    /// - Parameters:
    ///   - replacesStale: whether to replace a path on which no process answers.
    ///   - probe: opens a socket of the same type, to check whether a process answers.
    ///   - then: prepares the socket before another process may check its path.
    func bind(
        _ descriptor: Int32, to address: Endpoint, permissions: UInt32, replacesStale: Bool, probe: (Int32) -> Int32,
        then: () throws(SystemError) -> Void = {}
    ) throws(SystemError) {
        guard let path = address.filePath else {
            guard bind(descriptor, to: address) == 0 else { throw .last("bind to \(address)") }
            return try then()
        }
        guard permissions & ~0o777 == 0 else {
            throw SystemError("give \(path) the permissions \(String(permissions, radix: 8))", errno: EINVAL)
        }
        let claim = try PathClaim(path, self)
        if replacesStale { try removeStaleSocket(at: path, address, probe) }
        // On Linux, the path gets the socket's permissions without the umask's bits, so that it never has too many. The
        // umask belongs to the whole process, and must not change even briefly.
        guard setPermissions(permissions, of: descriptor) == 0 else { throw .last("set the permissions of \(path)") }
        guard bind(descriptor, to: address) == 0 else { throw .last("bind to \(address)") }
        do throws(SystemError) {
            guard setPermissions(permissions, at: path) == 0 else { throw .last("set the permissions of \(path)") }
            try then()
        } catch {
            _ = removeFile(at: path)
            throw error
        }
        _ = consume claim
    }

    /// Removes a stale socket. Other files, and sockets on which a process answers, stay.
    private func removeStaleSocket(
        at path: String, _ address: Endpoint, _ probe: (Int32) -> Int32
    ) throws(SystemError) {
        guard let file = socketFile(at: path) else { return }
        let probe = probe(AF_UNIX)
        guard probe >= 0 else { throw .last("open a socket for \(address)") }
        defer { close(probe) }
        guard connect(probe, to: address) != 0, errno == ECONNREFUSED else { return }
        remove(file, at: path)
    }
}
