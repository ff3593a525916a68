import Logging
import RunLoopKit
import RunLoopUnix

/// The connection to another member, for requests and their answers. Lost connections are made again; a message
/// meanwhile is lost, which the algorithm allows for.
final class Peer {
    /// Called with each answer.
    var answerHandler: (Message) -> Void = { _ in }

    /// The beginning of the first line, before the name of the sender.
    static let greeting = "member "

    private let own: String
    private let address: Address
    private let loop: RunLoop
    private let log: Logger
    private var attempt: ConnectionAttempt?
    private var connection: Connection?
    /// The end of the wait for an answer.
    private var patience: DelayedCall?

    /// The time after which a connection without an answer is replaced. The system would take longer to notice that
    /// the other host was started anew, or to send lost bytes again.
    private let longestWait: Duration

    /// - Parameter own: the name of this member.
    init(_ own: String, to address: Address, on loop: RunLoop, longestWait: Duration, _ log: Logger) {
        (self.own, self.address, self.loop, self.longestWait, self.log) = (own, address, loop, longestWait, log)
    }

    func connect() {
        var retry = Connection.Retry()
        retry.firstDelay = longestWait / 6
        retry.maximumDelay = longestWait
        retry.maximumTries = nil
        attempt = Connection.connect(
            host: address.host, port: address.port, on: loop, timeout: longestWait, retry: retry,
            receive: Framing.lines(upTo: Line.longest) { [weak self] connection, line in
                self?.receive(line, connection)
            }
        ) { [weak self] result in
            guard let self, case .success(let connection) = result else { return }
            (self.connection, attempt) = (connection, nil)
            connection.closeHandler = { [weak self] _, _ in self?.lost() }
            do {
                try connection.start()
                connection.write(Self.greeting + own + "\n")
            } catch {
                log.warning("\(address.host): \(error)")
            }
        }
    }

    private func lost() {
        connection = nil
        patience?.cancel()
        patience = nil
        loop.perform(afterDelay: longestWait / 6, inModes: .common) { [weak self] in self?.connect() }
    }

    func send(_ message: Message) {
        guard let connection else { return }
        connection.write("\(message.words)\n")
        guard patience == nil else { return }
        patience = loop.perform(afterDelay: longestWait, inModes: .common) { connection.close() }
    }

    private func receive(_ line: Span<UInt8>, _ connection: Connection) {
        patience?.cancel()
        patience = nil
        guard let message = try? Message(Line.text(line)) else { return connection.close() }
        answerHandler(message)
    }

    func close() {
        attempt?.cancel()
        connection?.closeHandler = nil
        connection?.close()
        patience?.cancel()
    }
}
