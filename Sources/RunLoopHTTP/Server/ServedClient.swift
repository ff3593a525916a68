#if Adapters
internal import HTTPTypes
internal import NIOHTTP1
internal import RunLoopKit
internal import RunLoopUnix

/// A connection as its handlers see it. On the loop's thread.
final class ServedClient {
    let core: ServerCore
    /// The limits and the hooks when the client connected.
    let settings: ServerCore.Settings
    let loop: RunLoop
    let peer: Endpoint
    /// The limit that refuses all the client's requests.
    let refusal: HTTPServer.Limit?
    let date: HTTPDate

    init(
        _ core: ServerCore, _ settings: ServerCore.Settings, on loop: RunLoop, _ peer: Endpoint,
        refusal: HTTPServer.Limit?
    ) {
        (self.core, self.settings, self.loop, self.peer, self.refusal) = (core, settings, loop, peer, refusal)
        date = loop[HTTPDate.ofLoop]
    }

    /// The terms of a connection that becomes a WebSocket.
    var webSocketTerms: WebSocketTerms {
        let limits = settings.limits
        return WebSocketTerms(
            loop: loop, modes: core.modes, isClient: false, idleTime: limits.idleTime, stallTime: limits.stallTime,
            messageBytes: limits.messageBytes, unreadBytes: limits.unreadBytes,
            error: { _ in HTTPServer.ExchangeError.closed })
    }

    func report(_ error: any Error, _ request: HTTPRequest) {
        if let failed = settings.hooks.failed { return failed(error, request) }
        loop.trace?(.ignored("an error of an HTTP server without a hook for it: \(error)"))
    }

    func note(_ exchange: HTTPExchange, _ version: HTTPVersion, isCutOff: Bool) {
        guard let completed = settings.hooks.completed else { return }
        completed(
            HTTPServer.Completion(
                request: exchange.request == .unreadable ? nil : exchange.request, version: "\(version)", peer: peer,
                status: exchange.status, receivedBytes: exchange.body.received, sentBytes: exchange.sent,
                duration: loop.now - exchange.begun, limit: exchange.limit, isCutOff: isCutOff))
    }

    /// Notes that a client was refused before a request could be read.
    func note(_ refusal: HTTPServer.Refusal) {
        settings.hooks.completed?(
            HTTPServer.Completion(
                request: nil, version: "HTTP/1.1", peer: peer, status: refusal.status, receivedBytes: 0, sentBytes: 0,
                duration: .zero, limit: refusal.limit, isCutOff: false))
    }
}
#endif
