internal import Glibc

/// Opens and checks sockets that listen.
struct ListeningSocket {
    let system: any SystemCalls

    func open(_ address: Endpoint, _ options: Listener.Options) throws(SystemError) -> Int32 {
        let descriptor = system.socket(address.family)
        guard descriptor >= 0 else { throw .last("open a socket for \(address)") }
        do throws(SystemError) {
            if address.family == AF_INET6 {
                system.setOption(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, options.isDualStack ? 0 : 1)
            }
            if let path = address.filePath {
                try bind(descriptor, to: address, at: path, options)
            } else {
                system.setOption(descriptor, SOL_SOCKET, SO_REUSEADDR, 1)
                if options.reusesPort { system.setOption(descriptor, SOL_SOCKET, SO_REUSEPORT, 1) }
                // Its connections inherit the option.
                if options.hasNoDelay { system.setOption(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, 1) }
                try bind(descriptor, to: address)
            }
            guard system.listen(descriptor, backlog: options.backlog) == 0 else { throw .last("listen on \(address)") }
            return descriptor
        } catch {
            system.close(descriptor)
            throw error
        }
    }

    private func bind(_ descriptor: Int32, to address: Endpoint) throws(SystemError) {
        guard system.bind(descriptor, to: address) == 0 else { throw .last("bind to \(address)") }
    }

    /// Binds to a path, which then has exactly the requested permissions. No process can connect before that, because
    /// the socket does not listen yet.
    private func bind(
        _ descriptor: Int32, to address: Endpoint, at path: String, _ options: Listener.Options
    ) throws(SystemError) {
        guard options.permissions & ~0o777 == 0 else {
            throw SystemError("give \(path) the permissions \(String(options.permissions, radix: 8))", errno: EINVAL)
        }
        if options.replacesStalePath { try removeStaleSocket(at: path, address) }
        // On Linux the path gets the permissions of the socket less those of the umask, so that it never has too many.
        // The umask itself belongs to the whole process, and must not change even for a moment.
        guard system.setPermissions(options.permissions, of: descriptor) == 0 else {
            throw .last("set the permissions of \(path)")
        }
        try bind(descriptor, to: address)
        guard system.setPermissions(options.permissions, at: path) == 0 else {
            let error = SystemError.last("set the permissions of \(path)")
            _ = system.removeFile(at: path)
            throw error
        }
    }

    /// Removes a stale socket. A file that is no socket stays, and so does a socket on which a process answers.
    private func removeStaleSocket(at path: String, _ address: Endpoint) throws(SystemError) {
        guard let file = system.socketFile(at: path) else { return }
        let probe = system.socket(AF_UNIX)
        guard probe >= 0 else { throw .last("open a socket for \(address)") }
        defer { system.close(probe) }
        guard system.connect(probe, to: address) != 0, errno == ECONNREFUSED else { return }
        system.remove(file, at: path)
    }

    func check(_ descriptor: Int32) throws(SystemError) {
        guard let listens = system.option(descriptor, SOL_SOCKET, SO_ACCEPTCONN) else {
            throw .last("use descriptor \(descriptor) as a listening socket")
        }
        guard listens != 0 else {
            throw SystemError("descriptor \(descriptor) is a socket that does not listen", errno: EINVAL)
        }
    }
}
