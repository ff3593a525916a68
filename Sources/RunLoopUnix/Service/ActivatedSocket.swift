internal import Glibc

/// A socket that the service manager opened and handed to this process: socket activation.
///
/// ```swift
/// for socket in try ActivatedSocket.all() {
///     try socket.expect(.stream, listening: true)
///     print(socket.name, socket.fileDescriptor)
/// }
/// ```
///
/// The descriptor belongs to whoever takes it: it is not closed here.
public struct ActivatedSocket: Sendable, Hashable {
    /// How a socket sends.
    public enum Kind: Int32, Sendable, Hashable {
        /// A stream of bytes.
        case stream = 1
        /// Datagrams.
        case datagram = 2
        /// A stream of packets.
        case sequencedPackets = 5
        /// Another kind of socket.
        case otherSocket = -1
        /// No socket: a FIFO, a file, a device.
        case noSocket = -2
    }

    /// What kind of addresses a socket has.
    public enum Family: Int32, Sendable, Hashable {
        /// Paths and abstract names.
        case unix = 1
        /// IPv4.
        case inet = 2
        /// IPv6.
        case inet6 = 10
        /// Another one, or none at all.
        case other = -1
    }

    /// The descriptor; it is closed when another program is executed.
    public let fileDescriptor: Int32
    /// The name that the manager gives it (`FileDescriptorName=`); `unknown` if it gives none.
    public let name: String
    /// How it sends.
    public let kind: Kind
    /// What kind of addresses it has.
    public let family: Family
    /// Whether it waits for connections, rather than being one.
    public let isListening: Bool

    /// The sockets that were handed to this process, in the manager's order. None without a manager, or if they are
    /// meant for another process (`LISTEN_PID`).
    ///
    /// The variables are removed from the process's environment, so that its children do not take the sockets for
    /// theirs: a second call finds none. Before there are other threads, and before anything else opens descriptors.
    ///
    /// - Parameter environment: the variables; the process's unless given.
    /// - Throws: ``ServiceManagerError`` if the variables contradict each other or what is open.
    public static func all(environment: [String: String]? = nil) throws(ServiceManagerError) -> [ActivatedSocket] {
        try all(environment: environment, first: 3)
    }

    /// - Parameter first: the number of the first descriptor; the protocol says 3, tests have others.
    static func all(environment: [String: String]?, first: Int32) throws(ServiceManagerError) -> [ActivatedSocket] {
        let variables = ServiceEnvironment(environment)
        defer {
            variables.remove([
                ServiceEnvironment.listenCount, ServiceEnvironment.listenProcess, ServiceEnvironment.listenNames,
            ])
        }
        guard let process = try variables.process(ServiceEnvironment.listenProcess), process == getpid(),
            let number = try variables.number(ServiceEnvironment.listenCount), number > 0
        else { return [] }
        guard let count = Int32(exactly: number), count <= Int32.max - first else {
            throw .invalidVariable(
                name: ServiceEnvironment.listenCount, value: "\(number)", reason: "so many descriptors there are not")
        }
        let names = variables[ServiceEnvironment.listenNames]
            .map { $0.split(separator: ":", omittingEmptySubsequences: false).map(String.init) }
        if let names, names.count != Int(count) {
            throw .namesDoNotMatch(names: names.count, sockets: Int(count))
        }
        var sockets: [ActivatedSocket] = []
        for place in 0..<Int(count) {
            sockets.append(try ActivatedSocket(first + Int32(place), name: names?[place] ?? "unknown"))
        }
        return sockets
    }

    private init(_ descriptor: Int32, name: String) throws(ServiceManagerError) {
        let flags = fcntl(descriptor, F_GETFD)
        guard flags >= 0, fcntl(descriptor, F_SETFD, flags | FD_CLOEXEC) >= 0 else { throw .notOpen(descriptor) }
        fileDescriptor = descriptor
        self.name = name
        let type = socketOption(SO_TYPE, of: descriptor)
        kind = type.map { Kind(rawValue: $0) ?? .otherSocket } ?? .noSocket
        family = socketOption(SO_DOMAIN, of: descriptor).flatMap(Family.init(rawValue:)) ?? .other
        isListening = socketOption(SO_ACCEPTCONN, of: descriptor) == 1
    }

    /// Throws unless the socket is what the program expects: a unit file is easily changed without the program.
    ///
    /// - Parameters:
    ///   - kind: how it is to send.
    ///   - family: what addresses it is to have; any unless given.
    ///   - listening: whether it is to wait for connections; either unless given.
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

private func socketOption(_ option: Int32, of descriptor: Int32) -> Int32? {
    var value: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    return getsockopt(descriptor, SOL_SOCKET, option, &value, &size) == 0 ? value : nil
}
