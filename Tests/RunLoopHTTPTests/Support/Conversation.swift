#if Adapters
import RunLoopHTTP
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import TestSupport
import Testing

/// A simulated host with a server, and a client on another host.
struct Conversation {
    var limits = HTTPServer.Limits()
    /// The time that the simulation has.
    var time = Duration.seconds(600)
    /// When the server's loop is blocked, if at all, and for how long.
    var block: (after: Duration, time: Duration)?
    let completions = Log<HTTPServer.Completion>()
    let failures = Log<String>()

    /// Runs the server that `make` makes, and a client's task; returns the client's log.
    func run(
        _ make: @escaping @Sendable (RunLoop, HTTPServer.Limits) -> HTTPServer,
        then control: @escaping @Sendable (RunLoop, HTTPServer) -> Void = { _, _ in },
        client: @escaping @Sendable (RunLoop, Log<String>) async throws -> Void
    ) -> [String] {
        let log = Log<String>()
        withSimulation { [limits, completions, failures, block] simulation in
            let network = SimulatedNetwork(simulation)
            network.addHost("web") { loop in
                let server = make(loop, limits)
                server.hooks.completed = { completions.append($0) }
                server.hooks.failed = { error, _ in failures.append("\(error)") }
                try server.listen(on: Endpoint("0.0.0.0", port: 80))
                control(loop, server)
                if let block { loop.perform(afterDelay: block.after) { simulation.spend(block.time) } }
            }
            network.addHost("client") { loop in
                loop.task {
                    do { try await client(loop, log) } catch { log.append("\(error)") }
                }
            }
            simulation.advance(by: time)
        }
        return log.entries
    }

    /// Sends `requests`, each piece after the pause before it, and returns all bytes that come until the server closes, or until
    /// the client has heard nothing for 30 seconds.
    func answers(
        to requests: [(pause: Duration, text: String)], endsOutput: Bool = false,
        _ make: @escaping @Sendable (RunLoop, HTTPServer.Limits) -> HTTPServer,
        then control: @escaping @Sendable (RunLoop, HTTPServer) -> Void = { _, _ in }
    ) -> String {
        let log = run(make, then: control) { loop, log in
            let peer = try await Connection.connect(host: "web", port: 80, on: loop)
            loop.task {
                for (pause, text) in requests {
                    try await loop.clock.sleep(for: pause)
                    try await peer.write(text)
                }
                if endsOutput { peer.finishWriting() }
            }
            var received: [UInt8] = []
            do {
                while let bytes = try await loop.withTimeout(.seconds(30), { try await peer.read() }) {
                    received += bytes
                }
                received += Array("|closed".utf8)
            } catch is RunLoop.TimeoutError {
                received += Array("|open".utf8)
            } catch {
                received += Array("|\(error)".utf8)
            }
            log.append(String(decoding: received, as: UTF8.self))
        }
        return log.joined()
    }

    func answers(
        to requests: String, _ make: @escaping @Sendable (RunLoop, HTTPServer.Limits) -> HTTPServer
    ) -> String {
        answers(to: [(.zero, requests)], make)
    }
}

extension String {
    /// The text without the lines of dates, with a bar at the end of each line.
    var lines: String {
        split(separator: "\r\n", omittingEmptySubsequences: false)
            .filter { !$0.hasPrefix("Date: ") }.joined(separator: "/")
    }
}

/// A server with a few resources, for tasks.
@Sendable func resources(_ loop: RunLoop, _ limits: HTTPServer.Limits) -> HTTPServer {
    HTTPServer(on: loop, limits: limits) { request in
        switch (request.method, request.path) {
        case (.get, "/"), (.head, "/"): return .text("hello")
        case (.post, "/echo"):
            return HTTPServer.Response(body: try await request.body.collect(upTo: 100_000))
        case (.post, "/pieces"):
            var count = 0
            for try await piece in request.body { count += piece.readableBytes }
            return .text("\(count)" + (request.body.trailers.map { " \($0)" } ?? ""))
        case (.post, "/early"): return .text("early")
        case (.get, "/split"):
            return HTTPServer.Response(headerFields: [.init("x-echo")!: "a\r\nx-evil: b\r\n\r\nc"])
        case (.get, "/empty"): return HTTPServer.Response(.noContent)
        case (.get, "/stream"), (.head, "/stream"):
            return .stream(type: "text/plain") { writer in
                for word in ["one", "two"] {
                    try await writer.write(word)
                    try await loop.clock.sleep(for: .seconds(1))
                }
                writer.trailers = [.init("x-end")!: "yes"]
            }
        case (.get, "/short"):
            return .stream(length: 10, type: "text/plain") { try await $0.write("four") }
        case (.get, "/long"):
            return .stream(length: 3, type: "text/plain") { try await $0.write("four") }
        case (.get, "/broken"):
            return .stream(type: "text/plain") { writer in
                try await writer.write("begun")
                throw Broken()
            }
        case (.get, "/fails"): throw Broken()
        case (.get, "/sleeps"):
            try await loop.clock.sleep(for: .seconds(1_000))
            return .text("awake")
        default: throw HTTPServer.Refusal(.notFound, "there is no \(request.path)")
        }
    }
}

/// A server of answers without an end, in pieces of 32 KiB that are each noted when it is written.
@Sendable func endless(_ loop: RunLoop, _ limits: HTTPServer.Limits, _ pieces: Log<Int>) -> HTTPServer {
    HTTPServer(on: loop, limits: limits) { _ in
        .stream { writer in
            while true {
                // As if it was read by another thread.
                try await loop.clock.sleep(for: .milliseconds(1))
                pieces.append(32_768)
                try await writer.write(ByteBuffer(repeating: 0x78, count: 32_768))
            }
        }
    }
}

struct Broken: Error {}
#endif
