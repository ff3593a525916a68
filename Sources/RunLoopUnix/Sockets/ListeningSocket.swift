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
                let name = SocketPath(path, of: address, replacesStale: options.replacesStalePath, system)
                try name.bind(descriptor, permissions: options.permissions, probe: system.socket)
            } else {
                system.setOption(descriptor, SOL_SOCKET, SO_REUSEADDR, 1)
                if options.reusesPort { system.setOption(descriptor, SOL_SOCKET, SO_REUSEPORT, 1) }
                // Its connections inherit the option.
                if options.hasNoDelay { system.setOption(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, 1) }
                guard system.bind(descriptor, to: address) == 0 else { throw .last("bind to \(address)") }
            }
            guard system.listen(descriptor, backlog: options.backlog) == 0 else { throw .last("listen on \(address)") }
            return descriptor
        } catch {
            system.close(descriptor)
            throw error
        }
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
