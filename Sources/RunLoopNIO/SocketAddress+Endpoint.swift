#if Adapters
internal import Glibc
internal import NIOCore
internal import RunLoopUnix

extension SocketAddress {
    /// - Returns: `nil` for an address that is neither IPv4, IPv6 nor a path.
    init?(_ endpoint: Endpoint) {
        let address: SocketAddress? = endpoint.withSystemBytes { bytes in
            switch Int32(bytes.loadUnaligned(as: sa_family_t.self)) {
            case AF_INET: return SocketAddress(bytes.loadUnaligned(as: sockaddr_in.self))
            case AF_INET6: return SocketAddress(bytes.loadUnaligned(as: sockaddr_in6.self))
            case AF_UNIX:
                var address = sockaddr_un()
                withUnsafeMutableBytes(of: &address) { $0.copyMemory(from: bytes) }
                return SocketAddress(address)
            default: return nil
            }
        }
        guard let address else { return nil }
        self = address
    }
}

extension Endpoint {
    /// - Throws: ``SystemError`` if the path of a Unix socket is invalid.
    init(_ address: SocketAddress) throws(SystemError) {
        if case .unixDomainSocket = address, let path = address.pathname {
            try self.init(path: path)
        } else {
            let endpoint = address.withSockAddr { pointer, length in
                Result { () throws(SystemError) in
                    try Endpoint(systemBytes: UnsafeRawBufferPointer(start: pointer, count: length))
                }
            }
            self = try endpoint.get()
        }
    }
}

extension SystemError {
    /// The error as SwiftNIO's handlers expect it.
    var ioError: IOError { IOError(errnoCode: errno, reason: operation) }
}

extension Error {
    /// The error as SwiftNIO's handlers expect it.
    var forHandlers: any Error { (self as? SystemError)?.ioError ?? self }
}
#endif
