internal import CShims
internal import Glibc
@_spi(Ports) internal import RunLoopKit

/// The address of a socket: an IPv4 or IPv6 address with a port, or the path of a Unix socket.
///
/// A host name is not an address; ``HostResolver`` finds the addresses of a name without blocking the loop. Two
/// endpoints are equal if the system cannot tell them apart; it distinguishes an IPv4 address from its IPv4-mapped IPv6
/// form.
public struct Endpoint: Hashable, Sendable, CustomStringConvertible {
    private var storage = sockaddr_storage()
    private(set) var length: socklen_t = 0

    /// Creates an IPv4 or IPv6 address.
    ///
    /// - Parameters:
    ///   - address: an address in digits, for example `127.0.0.1` or `::1`. An IPv6 address may name its interface:
    ///     `fe80::1%eth0`.
    ///   - port: the port; 0 lets the system choose one.
    /// - Throws: ``SystemError`` with `EINVAL` if `address` is not an address in digits.
    public init(_ address: String, port: UInt16) throws(SystemError) {
        guard !address.utf8.contains(0) else {
            throw SystemError("an address with a zero byte, which would end it early", errno: EINVAL)
        }
        var hints = addrinfo()
        hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        defer { freeaddrinfo(found) }
        // The resolver reads 1.2.3 as 1.2.0.3.
        var four = in_addr()
        guard getaddrinfo(address, String(port), &hints, &found) == 0, let first = found,
            first.pointee.ai_family != AF_INET || inet_pton(AF_INET, address, &four) == 1
        else {
            throw SystemError("\(address) is not an IPv4 or IPv6 address in digits", errno: EINVAL)
        }
        self.init(first.pointee.ai_addr, first.pointee.ai_addrlen)
    }

    /// Creates the address of a Unix socket from a path, or from `@` and a name in the abstract namespace.
    ///
    /// - Throws: ``SystemError`` with `ENAMETOOLONG` for more than 107 bytes, and with `EINVAL` for an empty path or
    ///   one with a zero byte. An abstract name may have zero bytes.
    public init(path: String) throws(SystemError) {
        let isAbstract = path.hasPrefix("@")
        let bytes = isAbstract ? [0] + Array(path.utf8.dropFirst()) : Array(path.utf8)
        let header = MemoryLayout<sockaddr_un>.offset(of: \.sun_path)!
        guard !bytes.isEmpty else { throw SystemError("the path of a Unix socket is empty", errno: EINVAL) }
        guard isAbstract || !bytes.contains(0) else {
            throw SystemError("the path of a Unix socket has a zero byte, which would end it early", errno: EINVAL)
        }
        guard header + bytes.count < MemoryLayout<sockaddr_un>.size else {
            throw SystemError("the path \(path)", errno: ENAMETOOLONG)
        }
        storage.ss_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &storage) { $0[header...].copyBytes(from: bytes) }
        // A path ends with a zero byte; an abstract name ends where the address ends.
        assert(header + bytes.count <= MemoryLayout<sockaddr_storage>.size, "a path is longer than an address")
        length = socklen_t(header + bytes.count + (isAbstract ? 0 : 1))
    }

    /// Creates an address from the system's representation: a `sockaddr_in`, `sockaddr_in6` or `sockaddr_un`.
    ///
    /// - Throws: ``SystemError`` with `EAFNOSUPPORT` for another family, and with `EINVAL` if there are too few bytes
    ///   for the family, or more than any address has.
    public init(systemBytes bytes: UnsafeRawBufferPointer) throws(SystemError) {
        guard bytes.count >= MemoryLayout<sa_family_t>.size, bytes.count <= MemoryLayout<sockaddr_un>.size else {
            throw SystemError("an address of \(bytes.count) bytes", errno: EINVAL)
        }
        let family = Int32(bytes.loadUnaligned(as: sa_family_t.self))
        let least: Int
        switch family {
        case AF_INET: least = MemoryLayout<sockaddr_in>.size
        case AF_INET6: least = MemoryLayout<sockaddr_in6>.size
        case AF_UNIX: least = MemoryLayout<sa_family_t>.size
        default: throw SystemError("an address of the family \(family)", errno: EAFNOSUPPORT)
        }
        guard bytes.count >= least else { throw SystemError("an address of \(bytes.count) bytes", errno: EINVAL) }
        length = socklen_t(family == AF_UNIX ? bytes.count : least)
        withUnsafeMutableBytes(of: &storage) {
            $0.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes.prefix(Int(length))))
        }
    }

    /// Creates an empty address, to be filled in.
    @_spi(Ports) public init() {}

    /// The address itself, or `nil` if it is empty.
    var known: Endpoint? { family == AF_UNSPEC ? nil : self }

    /// The address of a Unix socket without a name.
    public static let unnamed: Endpoint = {
        var endpoint = Endpoint()
        endpoint.storage.ss_family = sa_family_t(AF_UNIX)
        endpoint.length = socklen_t(MemoryLayout<sa_family_t>.size)
        return endpoint
    }()

    /// Creates a copy of an address from the system.
    init(_ address: UnsafePointer<sockaddr>, _ length: socklen_t) {
        self.length = min(length, socklen_t(MemoryLayout<sockaddr_storage>.size))
        withUnsafeMutableBytes(of: &storage) {
            $0.copyMemory(from: UnsafeRawBufferPointer(start: address, count: Int(self.length)))
        }
    }

    /// Creates an address from a copy of its bytes.
    init(copying bytes: UnsafeRawBufferPointer) {
        assert(bytes.count <= MemoryLayout<sockaddr_storage>.size, "an address is longer than any")
        length = socklen_t(bytes.count)
        withUnsafeMutableBytes(of: &storage) { $0.copyMemory(from: bytes) }
    }

    init(filledBy call: (UnsafeMutablePointer<sockaddr>, inout socklen_t) -> Void) {
        length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        var length = length
        withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { call($0, &length) }
        }
        self.length = length
    }

    /// Completes an address whose bytes a system call has written; becomes `empty` if it has written none.
    mutating func wasFilled(to length: socklen_t, orIs empty: Endpoint) {
        assert(length <= socklen_t(MemoryLayout<sockaddr_storage>.size), "the system has written beyond an address")
        if length == 0 { self = empty } else { self.length = length }
    }

    /// Calls a closure with the bytes that distinguish addresses.
    private func withIdentity<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        assert(Int(length) <= MemoryLayout<sockaddr_storage>.size, "an address is longer than any")
        // The rest of an IPv4 address is padding.
        let rest = family == AF_INET ? MemoryLayout<sockaddr_in>.offset(of: \.sin_zero)! : Int(length)
        return withUnsafeBytes(of: storage) { body(UnsafeRawBufferPointer(rebasing: $0.prefix(rest))) }
    }

    public static func == (one: Endpoint, other: Endpoint) -> Bool {
        one.withIdentity { bytes in other.withIdentity { bytes.elementsEqual($0) } }
    }

    public func hash(into hasher: inout Hasher) {
        withIdentity { hasher.combine(bytes: $0) }
    }

    /// Returns an IPv4 or IPv6 address with another port; any other address unchanged.
    @_spi(Ports) public func with(port: UInt16) -> Endpoint {
        guard self.port != nil else { return self }
        var copy = self
        withUnsafeMutablePointer(to: &copy.storage) { pointer in
            // The port of an IPv6 address is at the same offset.
            pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { $0.pointee.sin_port = port.bigEndian }
        }
        return copy
    }

    func withSystemAddress<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        withUnsafePointer(to: storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
        }
    }

    /// Calls a closure with the system's representation of the address, which is valid only during the call. O(1).
    public func withSystemBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try withUnsafeBytes(of: storage) { try body(UnsafeRawBufferPointer(rebasing: $0.prefix(Int(length)))) }
    }

    /// The family of the address, such as `AF_INET6`.
    @_spi(Ports) public var family: Int32 { Int32(storage.ss_family) }

    /// The port; `nil` for a Unix socket.
    public var port: UInt16? {
        guard family == AF_INET || family == AF_INET6 else { return nil }
        return withSystemAddress { address, _ in
            // The port of an IPv6 address is at the same offset.
            address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { UInt16(bigEndian: $0.pointee.sin_port) }
        }
    }

    /// The path of a Unix socket, or `@` and an abstract name; empty for an unnamed socket, and `nil` for other
    /// addresses.
    public var path: String? {
        guard family == AF_UNIX else { return nil }
        let header = MemoryLayout<sockaddr_un>.offset(of: \.sun_path)!
        return withUnsafeBytes(of: storage) { bytes in
            let name = bytes[header..<max(header, Int(length))]
            guard let first = name.first else { return "" }
            if first == 0 { return "@" + String(decoding: name.dropFirst(), as: UTF8.self) }
            return String(decoding: name.prefix { $0 != 0 }, as: UTF8.self)
        }
    }

    /// The path of a Unix socket in the file system; `nil` for other addresses.
    var filePath: String? { path.flatMap { $0.isEmpty || $0.hasPrefix("@") ? nil : $0 } }

    /// The identity of a peer, for limits: an IPv4 address, or the 64-bit network prefix of an IPv6 address, because a
    /// single host may use a whole network. `nil` for other addresses.
    var host: UInt64? {
        func bytes<Address>(_ field: PartialKeyPath<Address>, _ range: Range<Int>) -> UInt64 {
            let offset = MemoryLayout<Address>.offset(of: field)!
            return withUnsafeBytes(of: storage) { bytes in
                range.reduce(0) { $0 << 8 | UInt64(bytes[offset + $1]) }
            }
        }
        switch family {
        case AF_INET: return bytes(\sockaddr_in.sin_addr, 0..<4)
        case AF_INET6:
            let network = bytes(\sockaddr_in6.sin6_addr, 0..<8)
            // An IPv4-mapped IPv6 address has the IPv4 address in its second half.
            return network == 0 ? bytes(\sockaddr_in6.sin6_addr, 8..<16) : network
        default: return nil
        }
    }

    /// The IPv4 or IPv6 address in digits, for example `127.0.0.1` or `fe80::1%eth0`; `nil` for a Unix socket.
    public var address: String? {
        guard path == nil else { return nil }
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(NI_MAXHOST)) { buffer -> String? in
            let status = withSystemAddress {
                getnameinfo($0, $1, buffer.baseAddress!, socklen_t(buffer.count), nil, 0, NI_NUMERICHOST)
            }
            return status == 0 ? String(cString: buffer.baseAddress!) : nil
        }
    }

    /// A textual representation, for example `127.0.0.1:80`, `[::1]:80` or a path. A path, which a client may choose,
    /// is escaped to one line.
    public var description: String {
        if let path { return path.isEmpty ? "unnamed" : escaped(path) }
        guard let address, let port else { return "unknown" }
        return family == AF_INET6 ? "[\(address)]:\(port)" : "\(address):\(port)"
    }
}
