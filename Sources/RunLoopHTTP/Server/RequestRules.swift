#if Adapters
internal import NIOHTTP1

/// The fields of a request by which the server decides, found in one pass, and rules of HTTP/1.1 that its decoder leaves to
/// its user.
struct RequestRules {
    private var hosts = 0
    /// The first length that the client has announced.
    private(set) var announcedLength: Int?
    /// True if a body follows, which may be empty.
    private(set) var hasBody = false
    private var hasCoding = false
    private(set) var expectsContinue = false
    /// True if the decoder takes the following bytes for another protocol, and parses no more.
    private(set) var stopsDecoder: Bool

    init(_ head: HTTPRequestHead) {
        stopsDecoder = head.method == .CONNECT
        for (name, value) in head.headers {
            // Nearly all other names have other lengths.
            switch name.utf8.count {
            case 4: if name.lowercased() == "host" { hosts += 1 }
            case 6:
                if name.lowercased() == "expect" {
                    expectsContinue = head.headers[canonicalForm: name].contains { $0.lowercased() == "100-continue" }
                }
            case 7: if name.lowercased() == "upgrade" { stopsDecoder = true }
            case 14:
                if name.lowercased() == "content-length" {
                    announcedLength = announcedLength ?? Int(value)
                    hasBody = true
                }
            case 17:
                if name.lowercased() == "transfer-encoding" { (hasCoding, hasBody) = (true, true) }
            default: break
            }
        }
    }

    /// The reason why the head does not belong to a request of HTTP/1.1.
    func refusal(of head: HTTPRequestHead) -> HTTPServer.Refusal? {
        guard hosts == 1 || hosts == 0 && head.version != .http1_1 else {
            return HTTPServer.Refusal(.badRequest, hosts == 0 ? "there is no host" : "there is more than one host")
        }
        guard hasCoding else { return nil }
        let codings = head.headers[canonicalForm: "transfer-encoding"]
        guard codings.isEmpty || codings.count == 1 && codings[0].lowercased() == "chunked" else {
            return HTTPServer.Refusal(.notImplemented, "bodies are sent in chunks, or as they are")
        }
        // Not every proxy reads such a request in the same way.
        guard codings.isEmpty || head.version == .http1_1 else {
            return HTTPServer.Refusal(.badRequest, "this version has no chunks")
        }
        return nil
    }
}
#endif
