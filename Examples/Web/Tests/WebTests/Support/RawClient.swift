import Glibc
import RunLoopUnix
import Testing

/// A blocking connection that sends any bytes.
final class RawClient {
    let descriptor: Int32

    /// - Parameters:
    ///   - source: the client's own address, one of the loopback's.
    ///   - room: the size of the client's receive buffer; by default the system's choice.
    init(port: Int, from source: String = "127.0.0.1", room: Int32? = nil) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        if var room { setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &room, 4) }
        var one: Int32 = 1
        // The port is chosen with the peer's address, so that one address has room for many connections.
        setsockopt(descriptor, Int32(IPPROTO_IP), 24, &one, 4)
        var own = Self.address(source, 0)
        let isBound = withUnsafePointer(to: &own) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        try #require(isBound)
        // Longer than any test waits.
        var limit = timeval(tv_sec: 60, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var address = Self.address("127.0.0.1", UInt16(port))
        let isConnected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        if !isConnected { throw SystemError("connect", errno: errno) }
    }

    private static func address(_ text: String, _ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        inet_pton(AF_INET, text, &address.sin_addr)
        return address
    }

    deinit {
        close(descriptor)
    }

    @discardableResult
    func send(_ text: String) -> Bool { send(Array(text.utf8)) }

    /// - Returns: `false` if the daemon has closed.
    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress! + sent, $0.count - sent, Int32(MSG_NOSIGNAL))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    /// Ends the output.
    func endOutput() {
        shutdown(descriptor, Int32(SHUT_WR))
    }

    /// Returns the next `count` bytes, or fewer at the end.
    func receive(_ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while bytes.count < count {
            let received = recv(descriptor, &buffer, min(buffer.count, count - bytes.count), 0)
            // A call with a limit is not resumed after a signal, such as one about another test's child.
            if received < 0, errno == EINTR { continue }
            guard received > 0 else { break }
            bytes += buffer[..<received]
        }
        return bytes
    }

    /// Returns all bytes until the daemon closes.
    func receiveToEnd() -> String { String(decoding: receive(.max), as: UTF8.self) }

    /// Returns all bytes until the text has arrived, or the end.
    func receive(until text: String) -> String {
        var received = ""
        while !received.hasSuffix(text) {
            let byte = receive(1)
            guard !byte.isEmpty else { break }
            received += String(decoding: byte, as: UTF8.self)
        }
        return received
    }
}
