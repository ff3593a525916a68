#if Adapters
internal import HTTPTypes

/// The server of a request: the connections to one origin are shared.
struct Origin: Hashable {
    let isSecure: Bool
    let host: String
    let port: Int

    /// - Returns: `nil` if the request has no scheme `http` or `https`, or no host.
    init?(_ request: HTTPRequest) {
        guard let scheme = request.scheme?.lowercased(), ["http", "https"].contains(scheme),
            let authority = request.authority
        else { return nil }
        isSecure = scheme == "https"
        var (host, port) = (authority[...], "")
        // The colons of an IPv6 address are in brackets.
        if let colon = authority.lastIndex(of: ":"), !authority[colon...].contains("]") {
            (host, port) = (authority[..<colon], String(authority[authority.index(after: colon)...]))
        }
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        guard !host.isEmpty, !host.contains("@") else { return nil }
        self.host = host.lowercased()
        guard !port.isEmpty else {
            self.port = isSecure ? 443 : 80
            return
        }
        guard port.utf8.allSatisfy({ (48...57).contains($0) }), let number = UInt16(port) else { return nil }
        self.port = Int(number)
    }
}

extension HTTPRequest {
    /// Creates a request from an address such as `https://host:8443/path?query`. A fragment is left out, and an empty path is
    /// `/`. The rest is sent as it is, so it must be encoded with percent signs where it needs to be.
    ///
    /// - Throws: ``HTTPClient/Failure/address(_:)`` if the address has no scheme `http` or `https`, or no host, or holds
    ///   characters that no address has.
    public init(
        _ method: Method, _ address: String, headerFields: HTTPFields = [:]
    ) throws(HTTPClient.Failure) {
        guard let mark = address.range(of: "://"), address.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
            throw .address(address)
        }
        let rest = address[mark.upperBound...].prefix { $0 != "#" }
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        var path = String(rest[authority.endIndex...])
        if !path.hasPrefix("/") { path = "/" + path }
        self.init(
            method: method, scheme: address[..<mark.lowerBound].lowercased(), authority: String(authority), path: path,
            headerFields: headerFields)
        guard Origin(self) != nil else { throw .address(address) }
    }
}

extension String {
    /// Returns the range of a short text.
    fileprivate func range(of text: String) -> Range<String.Index>? {
        indices.first { self[$0...].hasPrefix(text) }.map { $0..<index($0, offsetBy: text.count) }
    }
}
#endif
