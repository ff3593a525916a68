#if Adapters
internal import NIOHTTP1

/// Rules of HTTP/1.1 that its decoder leaves to its user.
extension HTTPRequestHead {
    /// The reason why the head does not belong to a request of HTTP/1.1.
    var refusal: HTTPServer.Refusal? {
        let hosts = headers["host"].count
        guard hosts == 1 || hosts == 0 && version != .http1_1 else {
            return HTTPServer.Refusal(.badRequest, hosts == 0 ? "there is no host" : "there is more than one host")
        }
        guard headers.contains(name: "transfer-encoding") else { return nil }
        let codings = headers[canonicalForm: "transfer-encoding"]
        guard codings.isEmpty || codings.count == 1 && codings[0].lowercased() == "chunked" else {
            return HTTPServer.Refusal(.notImplemented, "bodies are sent in chunks, or as they are")
        }
        // Not every proxy reads such a request in the same way.
        guard codings.isEmpty || version == .http1_1 else {
            return HTTPServer.Refusal(.badRequest, "this version has no chunks")
        }
        return nil
    }

    /// True if a body follows, which may be empty.
    var hasBody: Bool { headers.contains(name: "content-length") || headers.contains(name: "transfer-encoding") }

    /// True if the decoder takes the following bytes for another protocol, and parses no more.
    var stopsDecoder: Bool { headers.contains(name: "upgrade") || method == .CONNECT }

    var expectsContinue: Bool {
        headers[canonicalForm: "expect"].contains { $0.lowercased() == "100-continue" }
    }
}
#endif
