import Logging
import RunLoopKit
import RunLoopUnix

/// Serves clients, and the requests of other members, who give their name in their first line. Used on the node's loop.
final class Server {
    private let node: Node
    private let loop: RunLoop
    private let log: Logger
    /// Accepts the connections, and keeps them.
    private(set) lazy var connections = RunLoopUnix.Server(on: loop) { [unowned self] connection, _ in serve(connection)
    }
    /// The latest connection of each member.
    private var members: [String: Connection] = [:]

    init(_ node: Node, on loop: RunLoop, _ log: Logger) {
        (self.node, self.loop, self.log) = (node, loop, log)
        connections.errorHandler = { _, error in log.warning("\(error)") }
        node.answerHandler = { [unowned self] in members[$1]?.write("\($0.words)\n") }
    }

    /// - Throws: `SystemError` if the server cannot listen at `address`.
    func listen(on address: Endpoint) throws {
        let address = try connections.listen(on: address)
        log.info("listening on \(address)")
    }

    private func serve(_ connection: Connection) {
        var member: String?
        connection.receiveHandler = Framing.lines(upTo: Line.longest) { [unowned self] connection, line in
            let line = Line.text(line)
            if let member {
                guard let message = try? Message(line), message.isRequest else { return connection.close() }
                node.receive(message, from: member)
            } else if let name = node.name(inGreeting: line) {
                member = name
                members[name] = connection
            } else {
                answer(line, on: connection)
            }
        }
        connection.closeHandler = { [unowned self] connection, _ in
            if let member, members[member] === connection { members[member] = nil }
        }
    }

    /// Answers a client, whose next request waits until then.
    private func answer(_ line: String, on connection: Connection) {
        guard let request = try? Request(line) else { return connection.write("\(Answer.malformed.text)\n") }
        connection.pauseReading()
        node.perform(request) { answer in
            connection.write("\(answer.text)\n")
            connection.resumeReading()
        }
    }

    func close() {
        connections.close()
    }
}
