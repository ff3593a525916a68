// An echo server as tasks, beside EchoServer with handlers: `AsyncEcho [port]`. Without a port it talks to itself and ends.

import RunLoopKit
import RunLoopUnix

@main
struct AsyncEcho {
    static func main() throws {
        let loop = RunLoop.main
        let port = CommandLine.arguments.dropFirst().first.flatMap(UInt16.init)
        let server = Server(on: loop) { connection, _ in
            connection.limits.idleTimeout = .seconds(60)
            while let bytes = try await connection.read() { try await connection.write(bytes) }
        }
        server.errorHandler = { _, error in print("a peer was lost: \(error)") }
        let address = try server.listen(on: Endpoint("127.0.0.1", port: port ?? 0))
        print("listening on 127.0.0.1")
        if port == nil {
            loop.task(name: "client") {
                try await talk(to: address, on: loop)
                try await server.shutDown()
            }
        }
        loop.run()  // until the server has shut down
    }

    static nonisolated(nonsending) func talk(to address: Endpoint, on loop: RunLoop) async throws {
        let connection = try await Connection.connect(to: address, on: loop)
        try await connection.withStream { stream in
            for word in ["hello", "again"] {
                try await stream.write(word)
                let answer = try await stream.read() ?? []
                print("echoed: \(String(decoding: answer, as: UTF8.self))")
            }
        }
    }
}
