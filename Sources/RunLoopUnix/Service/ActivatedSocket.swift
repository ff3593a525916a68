internal import Glibc

/// A socket that the service manager opened and passed to this process (socket activation).
///
/// ```swift
/// for socket in try ActivatedSocket.all() {
///     try socket.expect(.stream, listening: true)
///     print(socket.name, socket.fileDescriptor)
/// }
/// ```
///
/// The caller owns the descriptor; this type does not close it.
public struct ActivatedSocket: Sendable, Hashable {
    /// The kind of a socket.
    public enum Kind: Int32, Sendable, Hashable {
        /// A stream of bytes.
        case stream = 1
        /// Datagrams.
        case datagram = 2
        /// A stream of packets.
        case sequencedPackets = 5
        /// Another kind of socket.
        case otherSocket = -1
        /// Not a socket: a FIFO, a file, a device.
        case noSocket = -2
    }

    /// The address family of a socket.
    public enum Family: Int32, Sendable, Hashable {
        /// Paths and abstract names.
        case unix = 1
        /// IPv4.
        case inet = 2
        /// IPv6.
        case inet6 = 10
        /// Another family, or none.
        case other = -1
    }

    /// The descriptor, which closes when this process executes another program.
    public let fileDescriptor: Int32
    /// The name in the unit file (`FileDescriptorName=`); `unknown` if there is none.
    public let name: String
    /// The kind of the socket.
    public let kind: Kind
    /// The address family of the socket.
    public let family: Family
    /// A Boolean value that indicates whether the socket listens for connections.
    public let isListening: Bool

    /// Returns the sockets passed to this process, in the manager's order; none if there is no manager, or if they are
    /// for another process (`LISTEN_PID`).
    ///
    /// Removes the variables from the process's environment, so that children do not mistake the sockets for theirs; a
    /// second call finds none. Call it before the process has other threads or opens other descriptors.
    ///
    /// - Parameter environment: the variables; by default the process's own.
    /// - Throws: ``ServiceManagerError`` if the variables contradict each other or the open descriptors.
    public static func all(environment: [String: String]? = nil) throws(ServiceManagerError) -> [ActivatedSocket] {
        try all(environment: environment, first: 3)
    }

    /// - Parameter first: the first descriptor: 3 in the protocol, others in tests.
    static func all(environment: [String: String]?, first: Int32) throws(ServiceManagerError) -> [ActivatedSocket] {
        let variables = ServiceEnvironment(environment, WorldSystem.current)
        defer { variables.remove([.listenCount, .listenProcess, .listenNames]) }
        guard let process = try variables.process(.listenProcess), process == variables.ownProcess,
            let number = try variables.number(.listenCount), number > 0
        else { return [] }
        guard let count = Int32(exactly: number), count <= Int32.max - first else {
            throw .invalid(.listenCount, "\(number)", "a process cannot have so many descriptors")
        }
        let names = variables[.listenNames]
            .map { $0.split(separator: ":", omittingEmptySubsequences: false).map(String.init) }
        if let names, names.count != Int(count) {
            throw .namesDoNotMatch(names: names.count, sockets: Int(count))
        }
        return try (0..<Int(count)).map { place throws(ServiceManagerError) in
            try ActivatedSocket(first + Int32(place), name: names?[place] ?? "unknown")
        }
    }

    private init(_ descriptor: Int32, name: String) throws(ServiceManagerError) {
        assert(descriptor > STDERR_FILENO, "a socket is one of the standard streams")
        let flags = fcntl(descriptor, F_GETFD)
        guard flags >= 0, fcntl(descriptor, F_SETFD, flags | FD_CLOEXEC) >= 0 else { throw .notOpen(descriptor) }
        fileDescriptor = descriptor
        self.name = name
        func option(_ name: Int32) -> Int32? { RealSystem.shared.option(descriptor, SOL_SOCKET, name) }
        kind = option(SO_TYPE).map { Kind(rawValue: $0) ?? .otherSocket } ?? .noSocket
        family = option(SO_DOMAIN).flatMap(Family.init(rawValue:)) ?? .other
        isListening = option(SO_ACCEPTCONN) == 1
    }

    /// Checks that the socket is of the expected kind, because a unit file is easily changed without the program.
    ///
    /// - Parameters:
    ///   - kind: the required kind.
    ///   - family: the required address family; by default any.
    ///   - listening: whether the socket must or must not listen; by default either.
    public func expect(
        _ kind: Kind, _ family: Family? = nil, listening: Bool? = nil
    ) throws(ServiceManagerError) {
        guard kind == self.kind, family ?? self.family == self.family, listening ?? isListening == isListening else {
            throw .unexpectedSocket(
                name: name, expected: words(kind, family, listening), found: words(self.kind, self.family, isListening))
        }
    }

    private func words(_ kind: Kind, _ family: Family?, _ listening: Bool?) -> String {
        let parts = [family.map { "\($0)" }, "\(kind)", listening.map { $0 ? "listening" : "not listening" }]
        return parts.compactMap(\.self).joined(separator: " ")
    }
}
