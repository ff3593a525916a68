import Logging
import RunLoopKit
import RunLoopUnix

/// Serves clients, and the requests of other members, who give their name in their first line. Used on the node's loop.
final class Server {
    private let node: Node
    private let loop: RunLoop
    private let log: Logger
    private var listener: Listener?
    private var connections: [ObjectIdentifier: Connection] = [:]
    /// The latest connection of each member.
    private var members: [String: Connection] = [:]

    init(_ node: Node, on loop: RunLoop, _ log: Logger) {
        (self.node, self.loop, self.log) = (node, loop, log)
        node.answerHandler = { [unowned self] in members[$1]?.write("\($0.words)\n") }
    }

    /// - Throws: `SystemError` if the server cannot listen at `address`.
    func listen(on address: Endpoint) throws {
        let listener = try Listener(address: address, on: loop) { [unowned self] listener, descriptor, _ in
            serve(descriptor, from: listener)
        }
        listener.errorHandler = { [log] _, error in log.warning("\(error)") }
        self.listener = listener
        log.info("listening on \(listener.address)")
    }

    private func serve(_ descriptor: Int32, from listener: Listener) {
        var member: String?
        let receive = Framing.lines(upTo: Line.longest) { [unowned self] connection, line in
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
        let connection = Connection(adopting: descriptor, on: loop, receive: receive)
        connections[ObjectIdentifier(connection)] = connection
        connection.closeHandler = { [unowned self] connection, _ in
            connections[ObjectIdentifier(connection)] = nil
            if let member, members[member] === connection { members[member] = nil }
        }
        do { try connection.start() } catch { listener.pause(after: error) }
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

    func stopListening() {
        listener?.finish()
    }

    func close() {
        for connection in connections.values { connection.close() }
    }
}
