import RunLoopHTTP
import RunLoopKit
import RunLoopUnix
import WebhooksTestSupport

/// A destination that takes hooks, or does one of the other things that destinations do.
enum Receiver {
    enum Mood { case takes, refuses, rests, isSlow }

    /// Returns a program that is in one of the moods at each request, and lists the keys and bodies that it takes.
    static func serve(_ moods: [Mood]) -> @Sendable (RunLoop, Log<String>) throws -> Void {
        { loop, taken in
            try serve(on: loop) { request in
                switch moods.randomElement(using: &loop.randomNumbers)! {
                case .takes: break
                case .refuses: throw HTTPServer.Refusal(.internalServerError)
                case .rests: throw HTTPServer.Refusal(.serviceUnavailable, headerFields: [.retryAfter: "90"])
                case .isSlow:
                    try await loop.clock.sleep(for: .seconds(Int.random(in: 1...40, using: &loop.randomNumbers)))
                }
                try await take(request, taken)
            }
        }
    }

    static func take(_ request: HTTPServer.Request, _ taken: Log<String>) async throws {
        let key = request.headerFields[.init("Idempotency-Key")!] ?? "-"
        taken.append("\(key) \(String(buffer: try await request.body.collect(upTo: 10_000)))")
    }

    static func serve(on loop: RunLoop, _ body: @escaping (HTTPServer.Request) async throws -> Void) throws {
        let server = HTTPServer(on: loop) { request in
            try await body(request)
            return .text("thanks\n")
        }
        try server.listen(on: Endpoint("0.0.0.0", port: 80))
    }
}
