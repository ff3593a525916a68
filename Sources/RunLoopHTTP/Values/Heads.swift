#if Adapters
internal import HTTPTypes
internal import NIOHTTP1

// The types of heads: HTTPTypes' for programs, SwiftNIO's for its handlers.

extension HTTPRequest {
    /// The head of a request that cannot be read. Only this one has no path.
    static let unreadable = HTTPRequest(method: .get, scheme: nil, authority: nil, path: nil)

    /// - Returns: `nil` if the host, the method or a name is not one.
    init?(_ head: HTTPRequestHead) {
        guard let method = Method(head.method.rawValue) else { return nil }
        var fields = HTTPFields()
        fields.reserveCapacity(head.headers.count)
        var authority: String?
        for (name, value) in head.headers {
            guard let name = HTTPField.Name(name) else { return nil }
            if name == .host { authority = value } else { fields.append(HTTPField(name: name, value: value)) }
        }
        var path = head.uri[...]
        // The form for proxies: the target has the host, and not the field (RFC 9112, section 3.2.2).
        if method != .connect, path.utf8.first != UInt8(ascii: "/"), let mark = path.firstIndex(of: ":") {
            let rest = path[mark...].dropFirst("://".utf8.count)
            let host = rest.prefix { $0 != "/" && $0 != "?" }
            (authority, path) = (String(host), rest[host.endIndex...])
            if !path.hasPrefix("/") { path = "/" + path }
        }
        guard authority?.isAuthority ?? true else { return nil }
        self.init(method: method, scheme: nil, authority: authority, path: String(path), headerFields: fields)
    }
}

extension HTTPResponse {
    /// - Returns: `nil` if a name or the status is not one.
    init?(_ head: HTTPResponseHead) {
        guard (100...999).contains(head.status.code) else { return nil }
        var fields = HTTPFields()
        fields.reserveCapacity(head.headers.count)
        for (name, value) in head.headers {
            guard let name = HTTPField.Name(name) else { return nil }
            fields.append(HTTPField(name: name, value: value))
        }
        let status = Status(code: Int(head.status.code), reasonPhrase: head.status.reasonPhrase)
        self.init(status: status, headerFields: fields)
    }
}

extension HTTPField.Name {
    fileprivate static let host = HTTPField.Name("host")!
}

extension String {
    /// True if the text may be the host of a URL with its port. A character such as `@` or `/` would lead two readers to
    /// different hosts.
    fileprivate var isAuthority: Bool {
        let (low, high) = Self.authorityBytes
        var text = self
        // A loop over the bytes in place is four times as fast as one over the view.
        return text.withUTF8 { bytes in
            bytes.allSatisfy { $0 < 128 && ($0 < 64 ? low : high) >> UInt64($0 & 63) & 1 == 1 }
        }
    }

    /// A bit for each byte below 64, and for each from 64 to 127.
    private static let authorityBytes: (UInt64, UInt64) = {
        var (low, high) = (UInt64(0), UInt64(0))
        for byte in UInt8(0)..<128 {
            let scalar = Unicode.Scalar(byte)
            let isAllowed =
                scalar.properties.isAlphabetic || scalar.properties.numericType == .decimal
                || "-._~%!$&'()*+;=:[]".unicodeScalars.contains(scalar)
            guard isAllowed else { continue }
            if byte < 64 { low |= 1 << UInt64(byte) } else { high |= 1 << UInt64(byte - 64) }
        }
        return (low, high)
    }()
}

extension HTTPFields {
    init(_ headers: HTTPHeaders) {
        self.init()
        for (name, value) in headers {
            if let name = HTTPField.Name(name) { append(HTTPField(name: name, value: value)) }
        }
    }
}

extension HTTPHeaders {
    /// The fields of an answer, without those that frame it, which are the server's.
    init(_ fields: HTTPFields) {
        self.init()
        reserveCapacity(fields.count + 3)
        for field in fields where !HTTPFields.framing.contains(field.name) {
            add(name: field.name.rawName, value: field.value)
        }
    }
}

extension HTTPFields {
    /// The fields that frame a body.
    static let framing: [HTTPField.Name] = [.contentLength, .transferEncoding, .connection]
}
#endif
