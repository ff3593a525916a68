import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import RunLoopNIO

/// Hummingbird's router with some routes.
private func makeResponder() -> some HTTPResponder<BasicRequestContext> {
    let router = Router()
    router.get("hello/:name") { _, context in "hello \(context.parameters.get("name") ?? "nobody")" }
    router.post("count") { request, _ in
        var count = 0
        for try await part in request.body { count += part.readableBytes }
        return "\(count) bytes"
    }
    router.get("lines") { _, _ in
        Response(
            status: .ok,
            body: ResponseBody { writer in
                for line in 0..<1000 { try await writer.write(ByteBuffer(string: "line \(line)\n")) }
                try await writer.finish(nil)
            })
    }
    return router.buildResponder()
}

/// Serves the routes on a run loop, until the task is cancelled.
///
/// Hummingbird's application makes a `ServerBootstrap`, which demands SwiftNIO's own event loops; its router and its
/// channel for HTTP/1.1 do not.
func serveRoutes(
    at address: SocketAddress, on group: any EventLoopGroup, bound: @Sendable (SocketAddress) -> Void = { _ in }
) async throws {
    let (responder, logger) = (makeResponder(), Logger(label: "routes") { _ in SwiftLogNoOpLogHandler() })
    let http = HTTP1Channel { request, writer, channel in
        let context = BasicRequestContext(source: ApplicationRequestContextSource(channel: channel, logger: logger))
        let response = try await responder.respond(to: request, context: context)
        try await writer.write(response: response.head, body: response.body)
    }
    let server = try await RunLoopServerBootstrap(group: group).bind(to: address) { channel in
        http.setup(channel: channel, logger: logger)
    }
    if let address = server.channel.localAddress { bound(address) }
    try await server.executeThenClose { connections in
        try await withThrowingDiscardingTaskGroup { tasks in
            for try await connection in connections {
                tasks.addTask { await http.handle(value: connection, logger: logger) }
            }
        }
    }
}
