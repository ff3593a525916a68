internal import Glibc

/// A datagram socket and its destination address.
final class NotifySocket: Sendable {
    private let system: any SystemCalls
    private let descriptor: Int32
    private let address: [UInt8]

    /// - Parameter name: the value of `NOTIFY_SOCKET`: an absolute path, or `@` and an abstract name.
    init(_ name: String, _ system: any SystemCalls) throws(ServiceManagerError) {
        address = try NotifySocket.address(of: name)
        self.system = system
        descriptor = system.openNotifySocket()
        if descriptor < 0 { throw .system(.last("make a socket to the service manager")) }
    }

    deinit {
        system.release(descriptor)
    }

    /// A `sockaddr_un` of exactly the length that the name needs: only the length ends an abstract name.
    static func address(of name: String) throws(ServiceManagerError) -> [UInt8] {
        func invalid(_ reason: String) -> ServiceManagerError { .invalid(.notifySocket, name, reason) }
        var path = Array(name.utf8)
        let isAbstract = path.first == UInt8(ascii: "@")
        guard isAbstract || path.first == UInt8(ascii: "/"), path.count > 1 else {
            throw invalid("it is to be an absolute path, or @ and a name; other addresses are not supported")
        }
        if path.contains(0) { throw invalid("a zero byte would end the path early") }
        if isAbstract { path[0] = 0 } else { path.append(0) }
        guard path.count <= MemoryLayout<sockaddr_un>.size - MemoryLayout<sa_family_t>.size else {
            throw invalid("the system allows 107 bytes")
        }
        return withUnsafeBytes(of: sa_family_t(AF_UNIX)) { Array($0) } + path
    }

    /// Sends one datagram, or throws `busy` while the receiver's queue is full. Any thread.
    func send(_ message: String) throws(ServiceManagerError) {
        let bytes = Array(message.utf8)
        var sent = -1
        repeat { sent = system.notify(descriptor, at: address, bytes) } while sent < 0 && errno == EINTR
        guard sent < 0 else { return }
        throw errno == EAGAIN ? .busy : .system(.last("notify the service manager"))
    }
}
