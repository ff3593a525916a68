internal import Glibc
public import RunLoopCore
internal import RunLoopKit
public import RunLoopUnix

/// A client of a recorded daemon: a connection that the daemon accepted, with all that came over it and when. `Sendable`.
///
/// ``play(to:on:patience:completion:)`` has it talk to a daemon again, for example to a changed one on a simulated host.
public struct RecordedClient: Sendable {
    /// Something that the client did.
    public struct Step: Sendable, Hashable {
        /// The kinds of steps.
        public enum Action: Sendable, Hashable {
            /// It sent these bytes.
            case send([UInt8])
            /// It sent no more.
            case finish
            /// It broke the connection off.
            case reset
        }

        /// When the daemon saw it, from the beginning of the record.
        public let time: Duration
        /// The bytes that the daemon had sent until then.
        public let answered: Int
        /// What the daemon saw.
        public let action: Action
    }

    /// The address of the client.
    public let peer: Endpoint
    /// When the daemon accepted it, from the beginning of the record.
    public let begin: Duration
    /// Its steps, in their order.
    public fileprivate(set) var steps: [Step] = []
    /// How many bytes the daemon sent to it.
    public fileprivate(set) var answerCount = 0
    /// Those bytes; `nil` unless they were recorded, see ``RecordingOptions/keepsOutput``.
    public fileprivate(set) var answer: [UInt8]?
}

extension Record {
    /// The clients of the daemon, in the order in which it accepted them. O(n log n) in the number of events.
    ///
    /// Their bytes are those of the connection: of one with TLS, what a changed daemon cannot decrypt.
    public var clients: [RecordedClient] {
        var clients: [RecordedClient] = []
        /// The client of each descriptor that is open.
        var open: [Int32: Int] = [:]
        let happenings = happenings
        let start = happenings.first?.time ?? RunLoop.Instant(nanoseconds: 0)
        for (time, happening) in happenings {
            switch happening {
            case .accepted(let descriptor, let peer):
                open[descriptor] = clients.count
                clients.append(RecordedClient(peer: peer, begin: time - start, answer: keepsOutput ? [] : nil))
            case .read(let descriptor, let count, let bytes):
                guard let number = open[descriptor] else { continue }
                // Errors that a daemon survives, such as an empty socket, are no steps.
                let action: RecordedClient.Step.Action? =
                    count > 0 ? .send(bytes) : count == 0 ? .finish : count == -Int(ECONNRESET) ? .reset : nil
                guard let action else { continue }
                clients[number].steps.append(
                    RecordedClient.Step(time: time - start, answered: clients[number].answerCount, action: action))
            case .wrote(let descriptor, let count, let bytes):
                guard let number = open[descriptor] else { continue }
                clients[number].answerCount += count
                clients[number].answer?.append(contentsOf: bytes)
            case .closed(let descriptor): open[descriptor] = nil
            case .madeThread: continue
            }
        }
        return clients
    }
}

extension RecordedClient {
    /// The end of a played client. A value and `Sendable`.
    public struct Outcome: Sendable {
        /// The bytes that came back.
        public let answer: [UInt8]
        /// The place of the first byte that differs from the recorded answer, which may be the end of the shorter one; `nil` if
        /// none does, or if the answer was not recorded.
        public let difference: Int?
        /// Why the connection was closed; `nil` if it could not be made.
        public let reason: Connection.CloseReason?
    }

    /// Has the client connect to a daemon and do what was recorded, at the recorded times from now. Call it on the loop's thread.
    ///
    /// It sends each piece at its time, and not before it has as many bytes as it had then: a client that waited for an answer
    /// waits for it.
    ///
    /// - Parameters:
    ///   - address: the daemon's.
    ///   - loop: the loop of the client, for example of a simulated host.
    ///   - patience: how long it waits for an answer that was longer when it was recorded.
    ///   - completion: called once, when the connection has ended.
    public func play(
        to address: Endpoint, on loop: RunLoop, patience: Duration = .seconds(1),
        completion: @escaping (Outcome) -> Void
    ) {
        let player = ClientPlayer(self, on: loop, patience, completion)
        loop.add(Timer(at: loop.now + begin) { _ in player.connect(to: address) }, forMode: .common)
    }
}

/// Plays a client. It belongs to the loop's thread; its connection and its timer keep it.
private final class ClientPlayer {
    private let client: RecordedClient
    private let loop: RunLoop
    private let patience: Duration
    private let completion: (RecordedClient.Outcome) -> Void
    private let start: RunLoop.Instant
    private var connection: Connection?
    private var answer: [UInt8] = []
    private var next = 0
    private var timer: Timer?
    /// When the answer that the next step waits for is given up.
    private var limit: RunLoop.Instant?

    init(
        _ client: RecordedClient, on loop: RunLoop, _ patience: Duration,
        _ completion: @escaping (RecordedClient.Outcome) -> Void
    ) {
        (self.client, self.loop, self.patience, self.completion) = (client, loop, patience, completion)
        start = loop.now
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

    /// Makes the steps whose time has come.
    private func proceed() {
        timer?.invalidate()
        timer = nil
        while let connection, connection.isOpen {
            guard next < client.steps.count else {
                if answer.count >= client.answerCount { connection.finish() } else { wait(for: client.answerCount) }
                return
            }
            let step = client.steps[next]
            let date = start + step.time
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
        completion(RecordedClient.Outcome(answer: answer, difference: difference, reason: reason))
    }
}
