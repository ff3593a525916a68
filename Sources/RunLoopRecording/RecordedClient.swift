internal import Glibc
@_spi(Ports) public import RunLoopCore
internal import RunLoopKit
public import RunLoopUnix

/// A client of a recorded daemon: a connection that the daemon accepted, with all its traffic and its times.
/// `Sendable`.
///
/// ``play(to:on:timeScale:patience:completion:)`` repeats the client against a daemon, for example a changed one on a
/// simulated host.
public struct RecordedClient: Sendable {
    /// An action of the client.
    public struct Step: Sendable, Hashable {
        /// The kinds of steps.
        public enum Action: Sendable, Hashable {
            /// The client sent these bytes.
            case send([UInt8])
            /// The client sent no more.
            case finish
            /// The client broke the connection off.
            case reset
        }

        /// The time when the daemon saw the action, from the beginning of the record.
        public let time: Duration
        /// The number of bytes that the daemon had sent until then.
        public let answered: Int
        /// The action, as the daemon saw it.
        public let action: Action
    }

    /// The address of the client.
    public let peer: Endpoint
    /// The time when the daemon accepted the client, from the beginning of the record.
    public let begin: Duration
    /// The client's steps, in order.
    public fileprivate(set) var steps: [Step] = []
    /// The number of bytes that the daemon sent to the client.
    public fileprivate(set) var answerCount = 0
    /// The bytes that the daemon sent; `nil` if they were not recorded, see ``RecordingOptions/keepsOutput``.
    public fileprivate(set) var answer: [UInt8]?
}

extension Record {
    /// The clients of the daemon, in the order in which it accepted them. O(n log n) in the number of events.
    ///
    /// The clients' bytes are as on the wire: with TLS they are encrypted, and a changed daemon cannot read them.
    public var clients: [RecordedClient] {
        var clients: [RecordedClient] = []
        /// The client of each open descriptor.
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
            }
        }
        return clients
    }
}

extension RecordedClient {
    /// The end of a played client. A `Sendable` value.
    public struct Outcome: Sendable {
        /// The client.
        public let client: RecordedClient
        /// The bytes of the answer.
        public let answer: [UInt8]
        /// The place of the first byte that differs from the recorded answer, which may be the end of the shorter one;
        /// `nil` if the answers are equal, or if none was recorded.
        public let difference: Int?
        /// The reason why the connection was closed; `nil` if it could not be made.
        public let reason: Connection.CloseReason?

        /// Compares the answer with the recorded one. Thrown in an exploration, the difference is a finding with a picture.
        ///
        /// - Throws: ``AnswerError`` if the answers differ.
        /// - Precondition: the record has the answers, see ``RecordingOptions/keepsOutput``.
        public func check() throws(AnswerError) {
            require(client.answer != nil, "the record has no answers to compare with; make it with keepsOutput")
            guard let difference, let recorded = client.answer else { return }
            throw AnswerError(peer: client.peer, place: difference, recorded: recorded, answer: answer)
        }
    }

    /// An answer of a daemon to a client that differs from the recorded one. A `Sendable` value.
    public struct AnswerError: Error, Sendable, Hashable, CustomStringConvertible {
        /// The recorded address of the client.
        public let peer: Endpoint
        /// The place of the first byte that differs, which may be the end of the shorter answer.
        public let place: Int
        /// The recorded answer.
        public let recorded: [UInt8]
        /// The new answer.
        public let answer: [UInt8]

        /// Both answers, from the line in which they differ.
        public var description: String {
            "the answer to \(peer) differs from byte \(place) on: \(line(of: answer)) in place of \(line(of: recorded))"
        }

        private func line(of bytes: [UInt8]) -> String {
            guard place < bytes.count || !bytes.isEmpty else { return "nothing" }
            let start = bytes[..<min(place, bytes.count)].lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
            guard start < bytes.count else { return "the end" }
            return bytes[max(start, place - 20)...].withUnsafeBytes { EventText.beginning(of: $0) }
        }
    }

    /// Connects the client to a daemon and repeats its steps, at the recorded times from now. Call this method on the
    /// loop's thread.
    ///
    /// The client sends each piece at its time, and not before it has received as many bytes as it had then: a client
    /// that waited for an answer waits for it. In an exploration, the recorded order is the usual one, and departures
    /// from it are tried.
    ///
    /// - Parameters:
    ///   - address: the daemon's address.
    ///   - loop: the loop of the client, for example of a simulated host.
    ///   - scale: the factor for the recorded times; not negative. With 0 all clients come at once, and wait only for
    ///     their answers, so that an exploration may order their steps in any way.
    ///   - patience: the longest wait for an answer that was longer when it was recorded.
    ///   - completion: called once, when the connection has ended.
    public func play(
        to address: Endpoint, on loop: RunLoop, timeScale scale: Double = 1, patience: Duration = .seconds(1),
        completion: @escaping (Outcome) -> Void
    ) {
        require(scale >= 0 && scale.isFinite, "the factor for recorded times is 0 or more, not \(scale)")
        let player = ClientPlayer(self, on: loop, scale, patience, completion)
        loop.add(Timer(at: player.date(of: begin)) { _ in player.connect(to: address) }, forMode: .common)
    }
}
