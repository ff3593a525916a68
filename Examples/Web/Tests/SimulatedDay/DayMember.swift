import NIOCore
import NIOHTTP1
import NIOWebSocket
import RunLoopKit
import RunLoopNIO

/// A member of the chat throughout the day, who returns whenever the connection ends.
final class DayMember {
    private let loop: RunLoop
    let name: String
    let day: Day
    private var random: RunLoop.RandomNumbers
    private var sent = 0

    init(_ number: Int, on loop: RunLoop, _ day: Day) {
        (self.loop, self.day) = (loop, day)
        name = "m\(number)"
        random = loop.randomNumbers
        join()
    }

    func nextMessage() -> String {
        sent += 1
        return "\(name)-\(sent)"
    }

    func delay(upTo seconds: Int) -> TimeAmount { .seconds(.random(in: 1...Int64(seconds), using: &random)) }

    func join() {
        let bound = NIOLoopBound(self, eventLoop: loop.nio)
        let connect = { @Sendable in
            let upgrader = NIOWebSocketClientUpgrader(requestKey: "MDEyMzQ1Njc4OWFiY2RlZg==") { channel, _ in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(DaySession(bound.value))
                }
            }
            RunLoopClientBootstrap(group: bound.value.loop.nio)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let opening = DayOpening(bound.value)
                        let removal = NIOLoopBound(opening, eventLoop: channel.eventLoop)
                        try channel.pipeline.syncOperations.addHTTPClientHandlers(
                            withClientUpgrade: (
                                upgraders: [upgrader],
                                completionHandler: {
                                    $0.pipeline.syncOperations.removeHandler(removal.value, promise: nil)
                                }
                            ))
                        try channel.pipeline.syncOperations.addHandler(opening)
                    }
                }
                .connect(host: "web", port: 80)
                .whenFailure { _ in bound.value.join() }
        }
        loop.perform(afterDelay: .seconds(Int.random(in: 1...60, using: &random))) { connect() }
    }
}
