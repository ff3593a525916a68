import AsyncHTTPClient
import Glibc
import NIOCore

// `Asker SECONDS` asks a service with async-http-client every ten seconds, for so long, and prints a line for each request:
// its path, the answer or the error, and how many milliseconds it took.

@main
enum Asker {
    static func main() async throws {
        let clock = ContinuousClock()
        let end = clock.now + .seconds(Int(CommandLine.arguments[1])!)
        var requests = 0
        while clock.now < end {
            requests += 1
            switch requests % 16 {
            case 0: await ask("slow")
            case 1: await ask("echo", body: String(repeating: "a", count: 100_000))
            default: await ask("count")
            }
            try await clock.sleep(for: .seconds(10))
        }
        print("asked", requests)
    }

    private static func ask(_ path: String, body: String? = nil) async {
        var request = HTTPClientRequest(url: "http://service/\(path)")
        if let body {
            request.method = .POST
            request.body = .bytes(ByteBuffer(string: body))
        }
        let begin = ContinuousClock.now
        var result: String
        do {
            let answer = try await HTTPClient.shared.execute(request, timeout: .seconds(8))
            let text = String(buffer: try await answer.body.collect(upTo: 1 << 20))
            result = text == body ? "same" : text
        } catch { result = "failed: \(error)" }
        print(path, (ContinuousClock.now - begin) / .milliseconds(1), result)
        fflush(nil)
    }
}
