internal import Glibc
@_spi(Ports) internal import RunLoopSimulation
@_spi(Ports) internal import RunLoopUnix

/// A simulated socket, which can be bound to a place of its machine.
class BoundSocket: OpenDescription {
    /// The table of the socket's machine.
    final let table: SocketTable
    final let family: Int32
    final var localAddress: Endpoint
    final private(set) var isBound = false
    final var options: [Int64: Int32] = [:]
    /// The longest times, in nanoseconds, that a call of a program waits for input and for room; 0 for no limit.
    final var waits = (input: Int64(0), output: Int64(0))
    /// The error that the next call returns.
    var error: Int32 = 0

    init(_ family: Int32, in table: SocketTable) {
        (self.family, self.table) = (family, table)
        localAddress = .any(of: family)
    }

    class var isDatagram: Bool { false }
    final var isSocket: Bool { true }
    final var network: Network { table.network }

    final func note(_ text: String) {
        network.simulation.note(text, of: table.name)
    }

    // MARK: Options

    @discardableResult
    func setOption(_ level: Int32, _ option: Int32, _ value: Int32) -> Int32 {
        options[Int64(level) << 32 | Int64(option)] = value
        return 0
    }

    func option(_ level: Int32, _ option: Int32) -> Int32? {
        if (level, option) == (SOL_SOCKET, SO_ERROR) { return takeError() ?? 0 }
        return options[Int64(level) << 32 | Int64(option)] ?? 0
    }

    final func takeError() -> Int32? {
        guard error != 0 else { return nil }
        defer { error = 0 }
        return error
    }

    // MARK: The place

    /// Binds the socket to an address, or to a free port there if the address has the port zero.
    ///
    /// - Returns: `false` if the place is taken.
    final func bindToPlace(of address: Endpoint) -> Bool {
        let former = localAddress
        let needsPort = address.port == 0
        localAddress = needsPort ? address.with(port: table.choosePort(forDatagrams: Self.isDatagram)) : address
        isBound = table.bind(self)
        if !isBound { localAddress = former }
        return isBound
    }

    final var reusesPort: Bool { option(SOL_SOCKET, SO_REUSEPORT) == 1 }
    private var reusesAddress: Bool { option(SOL_SOCKET, SO_REUSEADDR) == 1 }
    private var isSixOnly: Bool { option(Int32(IPPROTO_IPV6), IPV6_V6ONLY) == 1 }

    /// Returns `true` if both sockets may be bound to one port.
    final func shares(with other: BoundSocket) -> Bool {
        !overlaps(other) || (reusesPort && other.reusesPort)
            || (Self.isDatagram && reusesAddress && other.reusesAddress)
    }

    /// Returns `true` if both sockets would receive the same data.
    private func overlaps(_ other: BoundSocket) -> Bool {
        if family != other.family {
            let six = family == AF_INET6 ? self : other
            return !six.isSixOnly && six.localAddress.isWildcard
        }
        return localAddress.isWildcard || other.localAddress.isWildcard
            || localAddress.hostText == other.localAddress.hostText
    }

    /// Returns `true` if an address is one of the socket's own.
    final func covers(_ address: Endpoint) -> Bool {
        if family != address.family { return family == AF_INET6 && !isSixOnly && localAddress.isWildcard }
        return family == AF_UNIX || localAddress.isWildcard || localAddress.hostText == address.hostText
    }
}
