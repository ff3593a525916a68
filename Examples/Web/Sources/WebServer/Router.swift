internal import FoundationEssentials
internal import RunLoopHTTP

/// Answers the requests, each in a task on the loop of its connection.
struct Router: Sendable {
    let site: Site

    func answer(_ request: HTTPServer.Request) async throws -> HTTPServer.Response {
        let parts = request.path.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map(String.init)
        switch (parts.first, parts.count, request.method == .head ? .get : request.method) {
        case ("", 1, .get): return try await text(request) { .text("RunLoopKit serves this page.\n") }
        case ("health", 1, .get): return try await text(request) { try health() }
        case ("metrics", 1, .get):
            return try await text(request) { .text(site.metrics.text, type: "text/plain; version=0.0.4") }
        case ("echo", 1, .post): return try echo(try await body(of: request))
        case ("uploads", 2, .get):
            let name = try Uploads.Name(parts[1])
            _ = try await body(of: request)
            return try await site.uploads.open(name)
        case ("uploads", 2, .put):
            let name = try Uploads.Name(parts[1])
            request.maximumBody = site.limits.uploadBytes
            let count = try await site.uploads.store(request.body, as: name)
            return .text(#"{"name":"\#(name.text)","bytes":\#(count)}"# + "\n", .created, type: "application/json")
        case ("chat", 1, .get) where site.isReady:
            return .webSocket { [chat = site.chat, limits = site.limits] socket in
                try await chat.serve(socket, of: request, limits)
            }
        case ("chat", 1, .get): throw HTTPServer.Refusal(.upgradeRequired, "the chat closes")
        case ("console", 1, .get) where site.consoleAccess != nil:
            return try await text(request) { .console(PackageResources.console_html) }
        case ("console", 2, .get) where parts[1] == "snapshots" && site.consoleAccess != nil:
            return .webSocket { [site] socket in try await ConsoleViewer(site).serve(socket, of: request) }
        case ("", 1, _), ("health", 1, _), ("metrics", 1, _), ("chat", 1, _): throw notAllowed("GET, HEAD")
        case ("echo", 1, _): throw notAllowed("POST")
        case ("uploads", 2, _): throw notAllowed("GET, HEAD, PUT")
        default: throw HTTPServer.Refusal(.notFound, "there is no \(request.path)")
        }
    }

    private func notAllowed(_ methods: String) -> HTTPServer.Refusal {
        HTTPServer.Refusal(.methodNotAllowed, "the methods are \(methods)", headerFields: [.allow: methods])
    }

    /// Waits for the body, which is not longer than the limit, so that the connection stays open.
    private func body(of request: HTTPServer.Request) async throws -> ByteBuffer {
        try await request.body.collect(upTo: site.limits.http.bodyBytes)
    }

    private func text(
        _ request: HTTPServer.Request, _ response: () throws -> HTTPServer.Response
    ) async throws -> HTTPServer.Response {
        _ = try await body(of: request)
        return try response()
    }

    // MARK: JSON

    private struct Message: Codable {
        let message: String
    }

    private func echo(_ body: ByteBuffer) throws -> HTTPServer.Response {
        guard let message = try? JSONDecoder().decode(Message.self, from: Data(body.readableBytesView)) else {
            throw HTTPServer.Refusal(.badRequest, #"the body is not like {"message": "hello"}"#)
        }
        return try json(message)
    }

    private struct Health: Encodable {
        let live: Bool
        let ready: Bool
        let connections: Int
    }

    private func health() throws -> HTTPServer.Response {
        let health = Health(live: true, ready: site.isReady, connections: site.connections)
        return try json(health, health.ready ? .ok : .serviceUnavailable)
    }

    private func json(_ value: some Encodable, _ status: HTTPResponse.Status = .ok) throws -> HTTPServer.Response {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return .bytes(try encoder.encode(value) + Data("\n".utf8), status, type: "application/json")
    }
}

extension HTTPServer.Response {
    /// Creates the answer with the page of the console, which loads nothing, and talks to the daemon alone.
    fileprivate static func console(_ page: [UInt8]) -> HTTPServer.Response {
        var answer = bytes(page, type: "text/html; charset=utf-8")
        answer.headerFields[.cacheControl] = "no-store"
        answer.headerFields[.contentSecurityPolicy] =
            "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; "
            + "frame-ancestors 'none'"
        return answer
    }
}
