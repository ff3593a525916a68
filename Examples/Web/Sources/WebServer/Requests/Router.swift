internal import FoundationEssentials
internal import NIOCore
internal import NIOHTTP1

/// Selects the responder of a request.
struct Router {
    let site: Site

    /// - Throws: ``Refusal`` if there is no such resource, or not with this method.
    func responder(for head: HTTPRequestHead, on eventLoop: any EventLoop) throws -> any Responder {
        let path = head.uri.prefix { $0 != "?" }
        let parts = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map(String.init)
        let method = head.method == .HEAD ? .GET : head.method
        switch (parts.first, parts.count, method) {
        case ("", 1, .GET): return text(on: eventLoop) { Response("RunLoopKit serves this page.\n") }
        case ("health", 1, .GET): return text(on: eventLoop) { health }
        case ("metrics", 1, .GET):
            return text(on: eventLoop) { Response(site.metrics.text, type: "text/plain; version=0.0.4") }
        case ("echo", 1, .POST):
            return Collected(on: eventLoop, atMost: site.limits.bodyBytes) { body in
                eventLoop.makeCompletedFuture { try echo(body) }
            }
        case ("uploads", 2, .GET):
            let name = try Uploads.Name(parts[1])
            return Collected(on: eventLoop, atMost: site.limits.bodyBytes) { _ in
                site.uploads.open(name, on: eventLoop).map(Response.init)
            }
        case ("uploads", 2, .PUT):
            return site.uploads.begin(try Uploads.Name(parts[1]), on: eventLoop, atMost: site.limits.uploadBytes)
        case ("console", 1, .GET) where site.consoleAccess != nil:
            return text(on: eventLoop) { Response(consolePage: PackageResources.console_html) }
        case ("chat", 1, .GET):
            throw Refusal(
                status: .upgradeRequired, text: "the chat speaks WebSocket", headers: ["upgrade": "websocket"])
        case ("", 1, _), ("health", 1, _), ("metrics", 1, _), ("chat", 1, _): throw notAllowed("GET, HEAD")
        case ("echo", 1, _): throw notAllowed("POST")
        case ("uploads", 2, _): throw notAllowed("GET, HEAD, PUT")
        default: throw Refusal(status: .notFound, text: "there is no \(path)")
        }
    }

    private func notAllowed(_ methods: String) -> Refusal {
        Refusal(status: .methodNotAllowed, text: "the methods are \(methods)", headers: ["allow": methods])
    }

    private func text(on eventLoop: any EventLoop, _ response: @escaping () -> Response) -> any Responder {
        Collected(on: eventLoop, atMost: site.limits.bodyBytes) { _ in eventLoop.makeSucceededFuture(response()) }
    }

    // MARK: Answers

    private struct Message: Codable {
        let message: String
    }

    private func echo(_ body: ByteBuffer) throws -> Response {
        guard let message = try? JSONDecoder().decode(Message.self, from: Data(body.readableBytesView)) else {
            throw Refusal(status: .badRequest, text: #"the body is not like {"message": "hello"}"#)
        }
        return try json(message)
    }

    private struct Health: Encodable {
        let live: Bool
        let ready: Bool
        let connections: Int
    }

    private var health: Response {
        let health = Health(live: true, ready: site.isReady, connections: site.census.count)
        return (try? json(health, health.ready ? .ok : .serviceUnavailable)) ?? Response("", .internalServerError)
    }

    private func json(_ value: some Encodable, _ status: HTTPResponseStatus = .ok) throws -> Response {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return Response(
            String(decoding: try encoder.encode(value), as: UTF8.self) + "\n", status, type: "application/json")
    }
}
