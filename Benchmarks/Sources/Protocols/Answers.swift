import HTTPTypes
import NIOCore
import RunLoopHTTP
import RunLoopKit
import RunLoopUnix

/// The same answers as ``Greeting``'s, by RunLoopHTTP with its limits. One thread is the main thread, as in most programs.
func makeServer(withTasks: Bool, threads: Int) throws -> HTTPServer {
    var limits = HTTPServer.Limits()
    limits.connectionsPerPeer = limits.connections
    if threads == 1 {
        return withTasks
            ? HTTPServer(on: .main, limits: limits) { try await answer($0) }
            : HTTPServer(on: .main, limits: limits) { answer($0) }
    }
    let group = try LoopGroup(count: threads)
    return withTasks
        ? HTTPServer(on: group, limits: limits) { try await answer($0) }
        : HTTPServer(on: group, limits: limits) { answer($0) }
}

private nonisolated(nonsending) func answer(_ request: HTTPServer.Request) async throws -> HTTPServer.Response {
    switch (request.method, request.path) {
    case (.post, _): return HTTPServer.Response(body: try await request.body.collect(upTo: 1 << 20))
    case (_, "/stream"):
        return .stream(length: Greeting.pieces * Greeting.piece.readableBytes, type: "application/octet-stream") {
            writer in
            for _ in 0..<Greeting.pieces { try await writer.write(Greeting.piece) }
        }
    default: return HTTPServer.Response(body: Greeting.text)
    }
}

private func answer(_ exchange: HTTPExchange) {
    switch (exchange.request.method, exchange.request.path) {
    case (.post, _):
        var body = ByteBuffer()
        exchange.receiveHandler = { _, bytes in
            var bytes = bytes
            body.writeBuffer(&bytes)
        }
        exchange.endHandler = { $0.respond(HTTPServer.Response(body: body)) }
    case (_, "/stream"):
        exchange.begin(HTTPResponse(status: .ok), length: Greeting.pieces * Greeting.piece.readableBytes)
        var rest = Greeting.pieces
        let write = { (exchange: HTTPExchange) in
            while rest > 0, exchange.isWritable {
                exchange.write(Greeting.piece)
                rest -= 1
            }
            if rest == 0 { exchange.finish() }
        }
        exchange.drainHandler = write
        write(exchange)
    default: exchange.respond(HTTPServer.Response(body: Greeting.text))
    }
}
