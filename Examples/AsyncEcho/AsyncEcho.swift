// An echo server as tasks, beside EchoServer with handlers: `AsyncEcho [port]`. Without a port it talks to itself and ends.

import RunLoopKit
import RunLoopUnix

@main
struct AsyncEcho {
    static func main() throws {
        let loop = RunLoop.main
        let port = CommandLine.arguments.dropFirst().first.flatMap(UInt16.init)
        let listener = try Listener(address: Endpoint("127.0.0.1", port: port ?? 0), on: loop)
        print("listening on 127.0.0.1")
        if port == nil { loop.task(name: "client") { try await talk(to: listener, on: loop) } }
        try loop.run { try await serve(listener, on: loop) }
    }

    /// Serves clients until the listener is closed.
    static nonisolated(nonsending) func serve(_ listener: Listener, on loop: RunLoop) async throws {
        var limits = Connection.Limits()
        limits.idleTimeout = .seconds(60)
        while let connection = try await listener.accept(limits: limits) {
            loop.task(name: "peer") {
                try await connection.withStream { stream in
                    while let bytes = try await stream.read() { try await stream.write(bytes) }
                }
            } then: { result in
                if case .failure(let error) = result { print("a peer was lost: \(error)") }
            }
        }
    }

    static nonisolated(nonsending) func talk(to listener: Listener, on loop: RunLoop) async throws {
        let connection = try await Connection.connect(to: listener.address, on: loop)
        try await connection.withStream { stream in
            for word in ["hello", "again"] {
                try await stream.write(word)
                let answer = try await stream.read() ?? []
                print("echoed: \(String(decoding: answer, as: UTF8.self))")
            }
        }
        listener.close()
    }
}
