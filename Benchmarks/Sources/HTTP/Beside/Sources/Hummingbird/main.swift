// A server of Hummingbird, on one event loop of SwiftNIO's: `ServeHummingbird PORT`. It answers as `Greeting` does.
import Hummingbird
import NIOPosix

guard CommandLine.arguments.count == 2, let port = Int(CommandLine.arguments[1]) else {
    fatalError("usage: ServeHummingbird PORT")
}

let text = ByteBuffer(string: "Hello, world!")
let pieces = 64
let piece = ByteBuffer(repeating: 120, count: 16_384)

let router = Router()
router.get("/") { _, _ in Response(status: .ok, body: ResponseBody(byteBuffer: text)) }
router.get("/stream") { _, _ in
    Response(
        status: .ok,
        body: ResponseBody(contentLength: pieces * piece.readableBytes) { writer in
            for _ in 0..<pieces { try await writer.write(piece) }
            try await writer.finish(nil)
        })
}
router.post("/post") { request, _ in
    Response(status: .ok, body: ResponseBody(byteBuffer: try await request.body.collect(upTo: 1 << 20)))
}

let server = Application(
    router: router, configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: port)),
    eventLoopGroupProvider: .shared(MultiThreadedEventLoopGroup(numberOfThreads: 1)))
try await server.run()
