import Glibc

/// The system's kinds of sockets, as numbers. Their names in the C library belong to an enumeration that the modules
/// Glibc and CShims both have; in a test that sees both modules, the compiler finds either at random.
package enum SocketKind {
    package static let stream = Int32(SOCK_STREAM.rawValue)
    package static let datagrams = Int32(SOCK_DGRAM.rawValue)
    package static let closedOnExec = Int32(SOCK_CLOEXEC.rawValue)
    package static let nonBlocking = Int32(SOCK_NONBLOCK.rawValue)
}
