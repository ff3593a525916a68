import NIOCore
import NIOHTTP1
import RunLoopKit
import RunLoopNIO

/// A client of the day, which visits the daemon now and then, and checks each answer.
final class DayClient {
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
        loop.perform(afterDelay: .seconds(Int.random(in: 1...36_000, using: &random))) { [self] in visit() }
    }

    private func visit() {
        let requests = (0..<Int.random(in: 1...4, using: &random)).map { _ in request() }
        let bound = NIOLoopBound(self, eventLoop: loop.nio)
        RunLoopClientBootstrap(group: loop.nio)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHTTPClientHandlers()
                    try channel.pipeline.syncOperations.addHandlers([
                        NIOHTTPClientResponseAggregator(maxContentLength: 1 << 20),
                        DayConversation(requests, by: bound.value),
                    ])
                }
            }
            .connect(host: "web", port: 80)
            .whenFailure { _ in bound.value.rest() }
    }

    private func request() -> DayRequest {
        switch Int.random(in: 0..<4, using: &random) {
        case 0: return .put(newName(), content())
        case 1 where !stored.isEmpty: return .get(stored.randomElement(using: &random)!)
        default: return .echo(Int.random(in: 0..<1_000_000, using: &random))
        }
    }

    private func newName() -> String {
        uploads += 1
        return "\(name)-\(uploads)"
    }

    private static let bytes = (0..<20_000).map { UInt8(truncatingIfNeeded: $0 * $0 / 7) }

    private func content() -> [UInt8] {
        Array(Self.bytes[Int.random(in: 0...20_000, using: &random)...])
    }

    // MARK: Answers

    func take(_ response: NIOHTTPClientResponseFull, to request: DayRequest) {
        let body = response.body.map { Array($0.readableBytesView) } ?? []
        day.hasAnswered()
        switch (request, response.head.status) {
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
        default: day.fail("\(name): \(request) is answered with \(response.head.status)")
        }
    }

    func hasEnded() {
        rest()
    }
}
