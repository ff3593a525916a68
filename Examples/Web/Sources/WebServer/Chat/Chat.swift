internal import CoreMetrics
internal import RunLoopHTTP
internal import RunLoopKit
internal import RunLoopUnix
internal import Synchronization

/// Passes each message to the members on all loops. Any thread.
final class Chat: Sendable {
    private let loops: LoopGroup
    private let measures: Measures
    private let members = Atomic(0)
    private let posting = Mutex(())

    /// The members on a loop, in the order of their arrival.
    private static let room = RunLoop.Local<[WebSocket]> { _ in [] }

    init(_ loops: LoopGroup, _ measures: Measures) {
        (self.loops, self.measures) = (loops, measures)
    }

    /// Posts the messages of a member until it leaves, at the permitted rate. The others wait, and it is not read meanwhile.
    func serve(_ member: WebSocket, of request: HTTPServer.Request, _ limits: Limits) async throws {
        let loop = request.loop
        loop[Self.room].append(member)
        measures.members.record(members.add(1, ordering: .relaxed).newValue)
        defer {
            loop[Self.room].removeAll { $0 === member }
            measures.members.record(members.subtract(1, ordering: .relaxed).newValue)
        }
        // The time when the messages so far have been paid for.
        var paid = loop.now
        for try await message in member {
            guard case .text(let text) = message else { return member.close(1003) }
            // The messages of a second are taken at once.
            if paid > loop.now + .seconds(1) { try await loop.clock.sleep(until: paid - .seconds(1)) }
            // All members receive its bytes.
            let cost = 1 + text.utf8.count / 1024
            paid = max(paid, loop.now) + .seconds(1) * cost / limits.messagesPerSecond
            post(message)
        }
    }

    /// Posts a message, which members receive in the same order on all loops. One who has not read the earlier ones is dropped.
    private func post(_ message: WebSocket.Message) {
        posting.withLock { _ in
            loops.performOnEach { loop in
                for member in loop[Self.room] { member.write(message) }
            }
        }
    }
}
