internal import NIOCore
internal import NIOHTTP1

/// The answer to a request.
struct Response: Sendable {
    enum Body: Sendable {
        case bytes(ByteBuffer)
        case file(StoredFile)
    }

    var status = HTTPResponseStatus.ok
    var headers: HTTPHeaders
    var body: Body

    init(_ text: String, _ status: HTTPResponseStatus = .ok, type: String = "text/plain; charset=utf-8") {
        self.status = status
        headers = ["content-type": type]
        body = .bytes(ByteBuffer(string: text))
    }

    /// Creates the answer with the page of the console, which loads nothing, and talks to the daemon alone.
    init(consolePage page: [UInt8]) {
        headers = [
            "content-type": "text/html; charset=utf-8", "cache-control": "no-store",
            "content-security-policy":
                "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; "
                + "frame-ancestors 'none'",
        ]
        body = .bytes(ByteBuffer(bytes: page))
    }

    init(_ file: StoredFile) {
        headers = ["content-type": "application/octet-stream"]
        body = .file(file)
    }

    init(_ refusal: Refusal) {
        self.init(refusal.text + "\n", refusal.status)
        headers.add(contentsOf: refusal.headers)
    }

    var length: Int {
        switch body {
        case .bytes(let bytes): bytes.readableBytes
        case .file(let file): file.length
        }
    }
}
