/// The name of a member, and the host and the port where it serves clients and other members.
struct Address: Hashable, Sendable {
    let name: String
    let host: String
    let port: UInt16

    /// Creates an address from `name=host:port`; `nil` for a text of any other form.
    init?(_ text: String) {
        let parts = text.split(separator: "=", omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, !parts[0].contains(" "),
            let colon = parts[1].lastIndex(of: ":"), let port = UInt16(parts[1][colon...].dropFirst())
        else { return nil }
        (name, host, self.port) = (String(parts[0]), String(parts[1][..<colon]), port)
    }
}
