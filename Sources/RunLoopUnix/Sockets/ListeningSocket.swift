internal import Glibc

/// Opens and checks sockets that listen.
enum ListeningSocket {
    static func open(_ address: Endpoint, _ options: Listener.Options) throws(SystemError) -> Int32 {
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let descriptor = socket(address.family, kind, 0)
        guard descriptor >= 0 else { throw .last("open a socket for \(address)") }
        do throws(SystemError) {
            if address.family == AF_UNIX {
                if options.replacesStalePath { removeStalePath(of: address) }
            } else {
                setOption(descriptor, SOL_SOCKET, SO_REUSEADDR, 1)
                if options.reusesPort { setOption(descriptor, SOL_SOCKET, SO_REUSEPORT, 1) }
            }
            if address.family == AF_INET6 {
                setOption(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, options.isDualStack ? 0 : 1)
            }
            guard address.withSystemAddress({ bind(descriptor, $0, $1) }) == 0 else {
                throw .last("bind to \(address)")
            }
            guard listen(descriptor, options.backlog) == 0 else { throw .last("listen on \(address)") }
            return descriptor
        } catch {
            close(descriptor)
            throw error
        }
    }

    static func check(_ descriptor: Int32) throws(SystemError) {
        var listens: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        guard getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) == 0 else {
            throw .last("use descriptor \(descriptor) as a listening socket")
        }
        guard listens != 0 else {
            throw SystemError("descriptor \(descriptor) is a socket that does not listen", errno: EINVAL)
        }
    }

    /// Removes a path that a process left behind, where nobody answers any more.
    private static func removeStalePath(of address: Endpoint) {
        guard let path = address.path, !path.hasPrefix("@") else { return }
        let probe = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        guard probe >= 0 else { return }
        defer { close(probe) }
        let status = address.withSystemAddress { connect(probe, $0, $1) }
        if status != 0, errno == ECONNREFUSED { unlink(path) }
    }
}

extension Endpoint {
    /// The address that a socket is bound to.
    static func local(of descriptor: Int32) -> Endpoint {
        Endpoint { address, length in _ = getsockname(descriptor, address, &length) }
    }
}

func setOption(_ descriptor: Int32, _ level: Int32, _ option: Int32, _ value: Int32) {
    var value = value
    setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
}

func setNonBlocking(_ descriptor: Int32) {
    let flags = fcntl(descriptor, F_GETFL)
    if flags & O_NONBLOCK == 0 { _ = fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) }
    let descriptorFlags = fcntl(descriptor, F_GETFD)
    if descriptorFlags & FD_CLOEXEC == 0 { _ = fcntl(descriptor, F_SETFD, descriptorFlags | FD_CLOEXEC) }
}
