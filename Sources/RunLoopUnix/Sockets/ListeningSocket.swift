internal import Glibc

/// Opens and checks sockets that listen.
enum ListeningSocket {
    static func open(_ address: Endpoint, _ options: Listener.Options) throws(SystemError) -> Int32 {
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let descriptor = socket(address.family, kind, 0)
        guard descriptor >= 0 else { throw .last("open a socket for \(address)") }
        do throws(SystemError) {
            if address.family == AF_INET6 {
                setOption(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, options.isDualStack ? 0 : 1)
            }
            if let path = address.filePath {
                try bind(descriptor, to: address, at: path, options)
            } else {
                setOption(descriptor, SOL_SOCKET, SO_REUSEADDR, 1)
                if options.reusesPort { setOption(descriptor, SOL_SOCKET, SO_REUSEPORT, 1) }
                // Its connections inherit it.
                if options.hasNoDelay { setOption(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, 1) }
                try bind(descriptor, to: address)
            }
            guard listen(descriptor, options.backlog) == 0 else { throw .last("listen on \(address)") }
            return descriptor
        } catch {
            close(descriptor)
            throw error
        }
    }

    private static func bind(_ descriptor: Int32, to address: Endpoint) throws(SystemError) {
        guard address.withSystemAddress({ Glibc.bind(descriptor, $0, $1) }) == 0 else {
            throw .last("bind to \(address)")
        }
    }

    /// Binds to a path, which then has exactly the permissions asked for. Nobody can connect before that: the socket
    /// does not listen yet.
    private static func bind(
        _ descriptor: Int32, to address: Endpoint, at path: String, _ options: Listener.Options
    ) throws(SystemError) {
        guard options.permissions & ~0o777 == 0 else {
            throw SystemError("give \(path) the permissions \(String(options.permissions, radix: 8))", errno: EINVAL)
        }
        if options.replacesStalePath { try removeStaleSocket(at: path, address) }
        // On Linux the path gets those of the socket less those of the umask, so that it never has more than it should.
        // The umask itself is the whole process's, and not to be changed for a moment.
        guard fchmod(descriptor, options.permissions) == 0 else { throw .last("set the permissions of \(path)") }
        try bind(descriptor, to: address)
        guard fchmodat(AT_FDCWD, path, options.permissions, AT_SYMLINK_NOFOLLOW) == 0 else {
            let error = SystemError.last("set the permissions of \(path)")
            unlink(path)
            throw error
        }
    }

    /// Removes a socket that a process left behind. What is no socket stays, and so does one that anybody answers on.
    private static func removeStaleSocket(at path: String, _ address: Endpoint) throws(SystemError) {
        guard let file = FileIdentity(ofSocket: path) else { return }
        let probe = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        guard probe >= 0 else { throw .last("open a socket for \(address)") }
        defer { close(probe) }
        let status = address.withSystemAddress { connect(probe, $0, $1) }
        guard status != 0, errno == ECONNREFUSED else { return }
        file.remove(path)
    }

    static func check(_ descriptor: Int32) throws(SystemError) {
        guard let listens = option(descriptor, SOL_SOCKET, SO_ACCEPTCONN) else {
            throw .last("use descriptor \(descriptor) as a listening socket")
        }
        guard listens != 0 else {
            throw SystemError("descriptor \(descriptor) is a socket that does not listen", errno: EINVAL)
        }
    }
}

/// Which file a path leads to: another one may come to its place.
struct FileIdentity: Equatable {
    private let device: dev_t
    private let inode: ino_t

    /// That of a socket at the path; `nil` if there is none.
    init?(ofSocket path: String) {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { return nil }
        (device, inode) = (status.st_dev, status.st_ino)
    }

    /// Removes the path if it still leads to this file.
    func remove(_ path: String) {
        if FileIdentity(ofSocket: path) == self { unlink(path) }
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

/// The value of an option; `nil` if the socket has none of that kind.
func option(_ descriptor: Int32, _ level: Int32, _ option: Int32) -> Int32? {
    var value: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    return getsockopt(descriptor, level, option, &value, &length) == 0 ? value : nil
}

func setNonBlocking(_ descriptor: Int32) {
    let flags = fcntl(descriptor, F_GETFL)
    if flags & O_NONBLOCK == 0 { _ = fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) }
    let descriptorFlags = fcntl(descriptor, F_GETFD)
    if descriptorFlags & FD_CLOEXEC == 0 { _ = fcntl(descriptor, F_SETFD, descriptorFlags | FD_CLOEXEC) }
}
