internal import Glibc
internal import RunLoopUnix

/// The contents of a machine's `/etc/hosts`, understood as the C library does.
struct HostsFile {
    private let lines: [(address: Endpoint, names: [String])]

    init(_ bytes: [UInt8]) {
        lines = bytes.split(separator: UInt8(ascii: "\n")).compactMap { line in
            let text = String(decoding: line.prefix { $0 != UInt8(ascii: "#") }, as: UTF8.self)
            let fields = text.split { " \t\r\u{B}\u{C}".unicodeScalars.contains($0.unicodeScalars.first!) }
            guard let address = fields.first.flatMap({ Self.address(String($0)) }) else { return nil }
            return (address, fields.dropFirst().map { $0.lowercased() })
        }
    }

    /// All addresses of a name or an alias, in the order of the lines.
    func addresses(of name: String) -> [Endpoint] {
        let name = name.lowercased()
        return lines.filter { $0.names.contains(name) }.map(\.address)
    }

    /// The address that a text gives in its usual form; `nil` for any other text.
    private static func address(_ text: String) -> Endpoint? {
        var room = in6_addr()
        guard [AF_INET, AF_INET6].contains(where: { inet_pton($0, text, &room) == 1 }) else { return nil }
        return try? Endpoint(text, port: 0)
    }
}
