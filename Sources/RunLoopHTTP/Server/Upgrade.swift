#if Adapters
internal import NIOCore
internal import NIOHTTP1

/// The decision whether an HTTP/1.1 connection becomes a WebSocket, for which its first request alone may ask.
enum Upgrade {
    /// The first request is yet to come.
    case possible
    /// The program has not answered the request, and has not asked for its body.
    case considered(EventLoopPromise<HTTPHeaders?>)
    /// The request is served as any other. Its head is yet to come, for the second time.
    case declined
    /// The client is yet to be told.
    case agreed(WebSocket)
    case decided

    /// Notes a head, and returns whether it asks for an upgrade that may be.
    ///
    /// SwiftNIO's handler would accept one that names no upgrade in `Connection`, for which the decoder does not stop. The
    /// next request would reach the decoder of frames, which traps.
    mutating func mayBegin(with head: HTTPRequestHead) -> Bool {
        guard case .possible = self else { return false }
        self = .decided
        return head.headers.contains(name: "upgrade")
            && head.headers[canonicalForm: "connection"].contains { $0.lowercased() == "upgrade" }
    }

    /// Declines a request under consideration.
    ///
    /// - Returns: a promise for the caller to fulfil without fields; `nil` if there is no such request.
    mutating func decline() -> EventLoopPromise<HTTPHeaders?>? {
        guard case .considered(let promise) = self else { return nil }
        self = .declined
        return promise
    }

    /// Notes a head, and returns whether it is that of a request that was declined.
    mutating func wasDeclined() -> Bool {
        guard case .declined = self else { return false }
        self = .decided
        return true
    }

    /// Agrees to a request under consideration.
    ///
    /// - Returns: a promise for the caller to fulfil with the fields of the answer; `nil` if there is no such request.
    mutating func agree(_ socket: WebSocket) -> EventLoopPromise<HTTPHeaders?>? {
        guard case .considered(let promise) = self else { return nil }
        self = .agreed(socket)
        return promise
    }

    var isConsidered: Bool {
        if case .considered = self { true } else { false }
    }

    var isAgreed: Bool {
        if case .agreed = self { true } else { false }
    }

    /// Takes the WebSocket, when the client has been told, or has gone.
    mutating func takeSocket() -> WebSocket? {
        guard case .agreed(let socket) = self else { return nil }
        self = .decided
        return socket
    }
}
#endif
