internal import Glibc
@_spi(Ports) internal import RunLoopUnix

/// A machine as the network sees it.
class NetworkNode: Hashable {
    let name: String
    let addresses: [String]
    /// `true` if the node is switched on. Nothing arrives at a node that is down.
    var isUp = true

    init(_ name: String, addresses: [String]) {
        (self.name, self.addresses) = (name, addresses)
    }

    /// Returns an address of a family, or of the other family if there is none.
    final func address(of family: Int32) -> String? {
        addresses.first { $0.contains(":") == (family == AF_INET6) } ?? addresses.first
    }

    static func == (one: NetworkNode, other: NetworkNode) -> Bool { one === other }
    final func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// The path from a node to another one, or to itself.
struct NetworkPath: Hashable {
    let from: NetworkNode
    let to: NetworkNode

    var back: NetworkPath { NetworkPath(from: to, to: from) }
    var isLoopback: Bool { from === to }
}

extension Endpoint {
    /// The address without the port; empty for a path.
    var hostText: String {
        guard port != nil else { return "" }
        let text = description
        let host = text[..<text.lastIndex(of: ":")!]
        return host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : String(host)
    }

    /// `true` if the address stands for all addresses of a machine.
    var isWildcard: Bool { hostText == "0.0.0.0" || hostText == "::" }

    /// `true` if the address stands for the machine that uses it.
    var isLoopback: Bool { hostText == "::1" || hostText.hasPrefix("127.") }

    /// The machine's own address of its family, to which a connection to the wildcard goes, as on Linux.
    var loopback: Endpoint { try! Endpoint(family == AF_INET6 ? "::1" : "127.0.0.1", port: port ?? 0) }
}
