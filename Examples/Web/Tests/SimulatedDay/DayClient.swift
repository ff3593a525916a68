import RunLoopHTTP
import RunLoopKit

/// A client of the day, which visits the daemon now and then, and checks each answer.
final class DayClient {
    private enum Request {
        case echo(Int)
        case put(String, [UInt8])
        case get(String)
    }

    private let loop: RunLoop
    private let name: String
    private let day: Day
    private var random: RunLoop.RandomNumbers
    private var uploads = 0
    private var stored: [String] = []

    init(_ number: Int, on loop: RunLoop, _ day: Day) {
        (self.loop, self.day) = (loop, day)
        name = "c\(number)"
        random = loop.randomNumbers
        rest()
    }

    private func rest() {
        loop.perform(afterDelay: .seconds(Int.random(in: 1...36_000, using: &random))) { [self] in
            loop.task { [self] in
                await visit()
                rest()
            }
        }
    }

    /// Sends requests one after another over a connection.
    private func visit() async {
        var options = HTTPClient.Options()
        // A link may be cut forever.
        (options.answerTime, options.stallTime) = (.seconds(600), .seconds(600))
        let client = HTTPClient(on: loop, options: options)
        defer { client.close() }
        for request in (0..<Int.random(in: 1...4, using: &random)).map({ _ in request() }) {
            do { try await ask(request, client) } catch { return }
        }
    }

    private func request() -> Request {
        switch Int.random(in: 0..<4, using: &random) {
        case 0:
            uploads += 1
            return .put("\(name)-\(uploads)", Array(Self.bytes[Int.random(in: 0...20_000, using: &random)...]))
        case 1 where !stored.isEmpty: return .get(stored.randomElement(using: &random)!)
        default: return .echo(Int.random(in: 0..<1_000_000, using: &random))
        }
    }

    private static let bytes = (0..<20_000).map { UInt8(truncatingIfNeeded: $0 * $0 / 7) }

    private func ask(_ request: Request, _ client: HTTPClient) async throws {
        let (method, path, content): (HTTPRequest.Method, String, [UInt8]) =
            switch request {
            case .echo(let number): (.post, "/echo", Array("{\"message\":\"\(number)\"}".utf8))
            case .put(let upload, let content): (.put, "/uploads/\(upload)", content)
            case .get(let upload): (.get, "/uploads/\(upload)", [])
            }
        let answer = try await client.send(HTTPRequest(method, "http://web\(path)"), body: .bytes(content))
        let body = Array(try await answer.body.collect(upTo: 1 << 20).readableBytesView)
        day.hasAnswered()
        switch (request, answer.status) {
        case (.echo(let number), .ok):
            if body != Array("{\"message\":\"\(number)\"}\n".utf8) {
                day.fail("\(name) asked for \(number), got \(body)")
            }
        case (.put(let upload, let content), .created):
            stored.append(upload)
            day.acknowledge(upload, content)
        // The disk may be full.
        case (.put, .internalServerError) where day.isDiskFull: break
        case (.get(let upload), .ok):
            if body != day.stored[upload] { day.fail("\(name) asked for \(upload), got \(body.count) other bytes") }
        default: day.fail("\(name): \(method) \(path) is answered with \(answer.status)")
        }
    }
}
