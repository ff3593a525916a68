// A forwarder for the domain name system: `DNSForwarder address port upstream…` answers queries from its cache, or asks the
// upstream servers, one after another with growing pauses. Try it with `dig @127.0.0.1 -p 5300 example.org`.

import Glibc
import RunLoopKit
import RunLoopUnix

@main
struct Program {
    static func main() {
        let loop = RunLoop.main
        let arguments = CommandLine.arguments
        guard arguments.count > 3, let port = UInt16(arguments[2]) else {
            print("usage: DNSForwarder address port upstream…")
            exit(EX_USAGE)
        }
        do {
            let upstreams = try arguments[3...].map { try Endpoint($0, port: 53) }
            let forwarder = try DNSForwarder(at: Endpoint(arguments[1], port: port), upstreams: upstreams, on: loop)
            let daemon = Daemon(loop: loop, manager: try ServiceManager())
            try daemon.handleSignals()
            daemon.onStop(.stopAccepting) { forwarder.close() }
            exit(daemon.run())
        } catch {
            print(error)
            exit(EX_CONFIG)
        }
    }
}

/// Answers the queries of clients. A forwarder has one socket for clients, and one for each query and server: a forger
/// would have to guess its port, which the system chooses at random, and the number of the query.
final class DNSForwarder {
    /// The pause before a query is sent again, to the next server; it doubles each time.
    static let firstPause = Duration.milliseconds(400)
    /// The number of times that a query is sent.
    static let mostTries = 5
    /// The time for which an answer without a time to live is kept, in seconds.
    private static let shortTime: UInt32 = 30
    private static let longestTime: UInt32 = 86_400
    private static let mostAnswers = 10_000
    /// The largest number of queries, each of which has a socket for each server that it has asked.
    static let mostQueries = 300
    /// The largest number of clients that wait for the answer to one question.
    static let mostClients = 50

    private struct Client: Equatable {
        let peer: Endpoint
        /// The address that the client has asked, from which its answer leaves.
        let asked: Endpoint?
        let form: DNSMessage.Form
    }

    /// A query that waits for an upstream server.
    private final class Query {
        let question: [UInt8]
        var message: DNSMessage
        /// The clients that have asked the same question meanwhile.
        var clients: [Client]
        /// The sockets, by server. A former server may still answer.
        var sockets: [Int: DatagramSocket] = [:]
        var tries = 0
        /// The server most recently asked.
        var server = 0
        var timer: Timer?

        init(_ message: DNSMessage, for client: Client) {
            (self.message, question, clients) = (message, message.question, [client])
        }

        func end() {
            timer?.invalidate()
            for socket in sockets.values { socket.close() }
        }
    }

    private struct Answer {
        let message: DNSMessage
        let since: RunLoop.Instant
        let end: RunLoop.Instant
    }

    private let loop: RunLoop
    private var clients: DatagramSocket!
    private let upstreams: [Endpoint]
    private var answers: [[UInt8]: Answer] = [:]
    private var queries: [[UInt8]: Query] = [:]
    /// The server that has most recently answered, which is asked first.
    private var preferred = 0
    private(set) var hits = 0
    private(set) var misses = 0

    init(at address: Endpoint, upstreams: [Endpoint], on loop: RunLoop) throws {
        precondition(!upstreams.isEmpty, "a forwarder has an upstream server")
        (self.loop, self.upstreams) = (loop, upstreams)
        clients = try DatagramSocket(address: address, on: loop) { [unowned self] _, bytes, header in
            bytes.withUnsafeBufferPointer { receive(query: Array($0), header) }
        }
    }

    var address: Endpoint { clients.address }

    func close() {
        clients.close()
        for query in queries.values { query.end() }
        queries = [:]
    }

    // MARK: Clients

    private func receive(query bytes: [UInt8], _ header: DatagramSocket.Header) {
        guard let message = DNSMessage(bytes), !message.isAnswer else { return }
        let client = Client(peer: header.sender, asked: header.localAddress, form: message.form)
        if let answer = answers[message.question], answer.end > loop.now {
            hits += 1
            let age = UInt32((loop.now - answer.since).components.seconds)
            return reply(answer.message.aged(by: age), to: client)
        }
        misses += 1
        if let query = queries[message.question] {
            // A client that asks again is waiting already.
            guard !query.clients.contains(client) else { return }
            guard query.clients.count < Self.mostClients else { return reply(message.failure, to: client) }
            query.clients.append(client)
            return
        }
        guard queries.count < Self.mostQueries else { return reply(message.failure, to: client) }
        let query = Query(message, for: client)
        query.server = preferred
        var numbers = loop.randomNumbers
        query.message.number = .random(in: 0 ... .max, using: &numbers)
        queries[query.question] = query
        ask(query)
    }

    private func reply(_ message: DNSMessage, to client: Client) {
        clients.send(message.bytes(for: client.form), to: client.peer, from: client.asked)
    }

    // MARK: Upstream servers

    private func ask(_ query: Query) {
        query.timer?.invalidate()
        guard query.tries < Self.mostTries else { return end(query, with: query.message.failure) }
        let pause = Self.firstPause * (1 << query.tries)
        query.tries += 1
        let timer = Timer(at: loop.now + pause) { [unowned self] _ in askNext(query) }
        query.timer = timer
        loop.add(timer, forMode: .common)
        // Without a socket, for example because there are too many descriptors, the query counts as lost.
        _ = try? socket(of: query).send(query.message.bytes)
    }

    /// Returns the socket for the server to ask.
    private func socket(of query: Query) throws -> DatagramSocket {
        let server = query.server
        if let socket = query.sockets[server] { return socket }
        let socket = try DatagramSocket(peer: upstreams[server], on: loop) { [unowned self, weak query] _, bytes, _ in
            guard let query else { return }
            bytes.withUnsafeBufferPointer { receive(answer: Array($0), from: server, to: query) }
        }
        // A server that is running, but refuses: the next one is asked at once.
        socket.errorHandler = { [unowned self, weak query] _, _, _ in
            if let query, query.server == server { askNext(query) }
        }
        query.sockets[server] = socket
        return socket
    }

    private func askNext(_ query: Query) {
        query.server = (query.server + 1) % upstreams.count
        ask(query)
    }

    private func receive(answer bytes: [UInt8], from server: Int, to query: Query) {
        guard let message = DNSMessage(bytes), message.isAnswer, message.number == query.message.number,
            message.question == query.question
        else { return }
        preferred = server
        keep(message)
        end(query, with: message)
    }

    private func keep(_ message: DNSMessage) {
        let seconds = min(message.timeToLive ?? Self.shortTime, Self.longestTime)
        guard message.isConclusive, seconds > 0 else { return }
        if answers.count >= Self.mostAnswers { answers = answers.filter { $0.value.end > loop.now } }
        if answers.count >= Self.mostAnswers { answers = [:] }
        answers[message.question] = Answer(message: message, since: loop.now, end: loop.now + .seconds(Int64(seconds)))
    }

    private func end(_ query: Query, with answer: DNSMessage) {
        query.end()
        queries[query.question] = nil
        clients.sendTogether { for client in query.clients { reply(answer, to: client) } }
    }
}
