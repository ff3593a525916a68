internal import RunLoopCore
internal import RunLoopKit
internal import RunLoopUnix

/// Plays a client. Used only on the loop's thread; its connection and its timer keep it.
final class ClientPlayer {
    private let client: RecordedClient
    private let loop: RunLoop
    private let scale: Double
    private let patience: Duration
    private let completion: (RecordedClient.Outcome) -> Void
    private let start: RunLoop.Instant
    private var connection: Connection?
    private var answer: [UInt8] = []
    private var next = 0
    private var timer: Timer?
    /// The time when the answer that the next step waits for is given up.
    private var limit: RunLoop.Instant?

    init(
        _ client: RecordedClient, on loop: RunLoop, _ scale: Double, _ patience: Duration,
        _ completion: @escaping (RecordedClient.Outcome) -> Void
    ) {
        (self.client, self.loop, self.scale) = (client, loop, scale)
        (self.patience, self.completion) = (patience, completion)
        start = loop.now
    }

    func date(of time: Duration) -> RunLoop.Instant {
        // A product is not exact.
        start + (scale == 1 ? time : time * scale)
    }

    func connect(to address: Endpoint) {
        Connection.connect(to: address, on: loop) { [self] _, bytes in
            bytes.withUnsafeBufferPointer { answer += $0 }
            proceed()
            return bytes.count
        } completion: { [self] result in
            guard case .success(let connection) = result, (try? connection.start()) != nil else { return end(nil) }
            self.connection = connection
            connection.closeHandler = { [self] _, reason in end(reason) }
            proceed()
        }
    }

    /// Performs the steps whose time has come.
    private func proceed() {
        timer?.invalidate()
        timer = nil
        while let connection, connection.isOpen {
            guard next < client.steps.count else {
                if answer.count >= client.answerCount { connection.finish() } else { wait(for: client.answerCount) }
                return
            }
            let step = client.steps[next]
            let date = date(of: step.time)
            if date > loop.now { return look(at: date) }
            if answer.count < step.answered, !isGivenUp() { return wait(for: step.answered) }
            limit = nil
            next += 1
            switch step.action {
            case .send(let bytes): connection.write(bytes)
            case .finish: connection.finish()
            case .reset: connection.reset()
            }
        }
    }

    private func isGivenUp() -> Bool { limit.map { loop.now >= $0 } ?? false }

    private func wait(for count: Int) {
        if isGivenUp() {
            connection?.finish()
            return
        }
        limit = limit ?? loop.now + patience
        look(at: limit!)
    }

    private func look(at date: RunLoop.Instant) {
        let timer = Timer(at: date) { [self] _ in proceed() }
        loop.add(timer, forMode: .common)
        self.timer = timer
    }

    private func end(_ reason: Connection.CloseReason?) {
        timer?.invalidate()
        (timer, connection) = (nil, nil)
        var difference: Int?
        if let recorded = client.answer, recorded != answer {
            difference =
                zip(recorded, answer).enumerated().first { $1.0 != $1.1 }?.offset ?? min(recorded.count, answer.count)
        }
        completion(RecordedClient.Outcome(client: client, answer: answer, difference: difference, reason: reason))
    }
}
