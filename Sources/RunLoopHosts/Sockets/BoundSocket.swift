internal import Glibc
internal import RunLoopUnix

/// A simulated socket that can be bound to a place of its machine.
protocol BoundSocket: AnyObject {
    var family: Int32 { get }
    var localAddress: Endpoint { get }
    var isDatagram: Bool { get }
    func option(_ level: Int32, _ option: Int32) -> Int32?
}

extension BoundSocket {
    var reusesPort: Bool { option(SOL_SOCKET, SO_REUSEPORT) == 1 }
    private var reusesAddress: Bool { option(SOL_SOCKET, SO_REUSEADDR) == 1 }
    private var isSixOnly: Bool { option(Int32(IPPROTO_IPV6), IPV6_V6ONLY) == 1 }

    /// Whether both may be bound to one port.
    func shares(with other: any BoundSocket) -> Bool {
        !overlaps(other) || (reusesPort && other.reusesPort)
            || (isDatagram && reusesAddress && other.reusesAddress)
    }

    /// Whether both would receive the same.
    private func overlaps(_ other: any BoundSocket) -> Bool {
        if family != other.family {
            let six: any BoundSocket = family == AF_INET6 ? self : other
            return !six.isSixOnly && six.localAddress.isWildcard
        }
        return localAddress.isWildcard || other.localAddress.isWildcard
            || localAddress.hostText == other.localAddress.hostText
    }

    /// Whether an address is one of its own.
    func covers(_ address: Endpoint) -> Bool {
        if family != address.family { return family == AF_INET6 && !isSixOnly && localAddress.isWildcard }
        return family == AF_UNIX || localAddress.isWildcard || localAddress.hostText == address.hostText
    }
}
