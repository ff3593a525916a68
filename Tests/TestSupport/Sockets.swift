import Glibc

/// Two connected stream sockets.
package func makeSockets() -> (Int32, Int32) {
    var descriptors: [Int32] = [-1, -1]
    let status = socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &descriptors)
    precondition(status == 0, "no sockets (errno \(errno))")
    return (descriptors[0], descriptors[1])
}
