import Glibc

/// Makes two connected stream sockets.
package func makeSockets() -> (Int32, Int32) {
    var descriptors: [Int32] = [-1, -1]
    let status = socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &descriptors)
    precondition(status == 0, "no sockets (errno \(errno))")
    return (descriptors[0], descriptors[1])
}

/// Makes two sockets connected by TCP, whose resets lose bytes in flight.
package func makeTCPSockets() -> (Int32, Int32) {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    let one = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    defer { close(listener) }
    var address = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let other = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
            // A socket that listens without an address gets a port from the system.
            precondition(listen(listener, 1) == 0 && getsockname(listener, address, &length) == 0)
            precondition(connect(one, address, length) == 0)
            return accept(listener, nil, nil)
        }
    }
    precondition(other >= 0)
    return (one, other)
}

/// Makes a pipe, whose ends the caller closes.
package func makePipe() -> (read: Int32, write: Int32) {
    var ends: [Int32] = [-1, -1]
    let status = pipe(&ends)
    precondition(status == 0, "no pipe (errno \(errno))")
    return (ends[0], ends[1])
}

/// Returns `true` if the other end of a socket has been closed. A descriptor's number proves nothing: another test may
/// reuse it.
package func isClosed(peer descriptor: Int32) -> Bool {
    var byte: UInt8 = 0
    return recv(descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) == 0
}
