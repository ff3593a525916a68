internal import NIOCore
internal import NIOHTTP1

/// A request in progress.
struct Request {
    let head: HTTPRequestHead
    let begun: NIODeadline
    var responder: (any Responder)?
    var received = 0
    /// The number of bytes that the responder has in memory.
    var held = 0
    var sent = 0
    var isComplete = false
    /// The status of the answer, once it has begun.
    var answer: HTTPResponseStatus?
    /// `true` once the client has received the answer.
    var isAnswered = false
    var closes: Bool

    init(head: HTTPRequestHead, begun: NIODeadline, closes: Bool) {
        (self.head, self.begun, self.closes) = (head, begun, closes)
    }

    /// `true` if a body was announced.
    var hasBody: Bool {
        head.headers.contains(name: "transfer-encoding") || (head.headers.first(name: "content-length") ?? "0") != "0"
    }

    /// The first line of the request as in the log, escaped: a line of the log is one request.
    var line: String { "\(head.method) \(head.uri) \(head.version)".debugDescription }
}

/// Rules of HTTP/1.1 that its decoder leaves to its user.
extension HTTPRequestHead {
    /// The reason why the head does not belong to a request of HTTP/1.1.
    var refusal: Refusal? {
        let hosts = headers["host"].count
        guard hosts == 1 || hosts == 0 && version != .http1_1 else {
            return Refusal(status: .badRequest, text: hosts == 0 ? "there is no host" : "there is more than one host")
        }
        let codings = headers[canonicalForm: "transfer-encoding"]
        guard codings.isEmpty || codings.count == 1 && codings[0].lowercased() == "chunked" else {
            return Refusal(status: .notImplemented, text: "bodies are sent in chunks, or as they are")
        }
        return nil
    }

    /// `true` if the decoder takes the following bytes for another protocol, and parses no more.
    var stopsDecoder: Bool { headers.contains(name: "upgrade") || method == .CONNECT }
}
