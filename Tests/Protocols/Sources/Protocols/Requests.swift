import NIOCore
import NIOHTTP1
import RunLoopNIO

private typealias Conversation = NIOAsyncChannel<HTTPClientResponsePart, HTTPClientRequestPart>

/// Asks for the routes over one connection, with SwiftNIO's client.
func askForRoutes(
    _ address: SocketAddress, on group: any EventLoopGroup, _ log: @Sendable (String) -> Void
) async throws {
    let channel = try await RunLoopClientBootstrap(group: group).connect(to: address) { channel in
        channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHTTPClientHandlers()
            return try Conversation(wrappingChannelSynchronously: channel)
        }
    }
    try await channel.executeThenClose { inbound, outbound in
        var parts = inbound.makeAsyncIterator()
        for (method, path, sent) in [
            (HTTPMethod.GET, "/hello/world", 0), (.GET, "/nowhere", 0), (.POST, "/count", 3_000_000),
            (.GET, "/lines", 0),
        ] {
            let headers: HTTPHeaders = ["host": "server", "content-length": "\(sent)"]
            try await outbound.write(
                .head(HTTPRequestHead(version: .http1_1, method: method, uri: path, headers: headers)))
            for begin in stride(from: 0, to: sent, by: 50_000) {
                try await outbound.write(
                    .body(.byteBuffer(ByteBuffer(repeating: 7, count: min(50_000, sent - begin)))))
            }
            try await outbound.write(.end(nil))
            var (status, body) = ("", "")
            reading: while let part = try await parts.next() {
                switch part {
                case .head(let head): status = "\(head.status.code)"
                case .body(let bytes): body += String(buffer: bytes)
                case .end: break reading
                }
            }
            log("\(path): \(status), \(body.count > 40 ? "\(body.count) characters" : body)")
        }
    }
}
