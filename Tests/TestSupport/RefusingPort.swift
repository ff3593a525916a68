import Glibc

/// A port of 127.0.0.1 that refuses each connection. It is bound, so that no other socket listens there meanwhile.
package struct RefusingPort: ~Copyable {
    package let number: UInt16
    private let descriptor: Int32

    package init() {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        withUnsafeMutableBytes(of: &address) { bytes in
            let address = bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self)
            precondition(bind(descriptor, address, length) == 0 && getsockname(descriptor, address, &length) == 0)
        }
        self.descriptor = descriptor
        number = UInt16(bigEndian: address.sin_port)
    }

    deinit {
        close(descriptor)
    }
}
