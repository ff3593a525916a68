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

/// Answers the queries of clients. It has a socket for them, and one for each upstream server, whose port and numbers a
/// liar would have to guess.
final class DNSForwarder {
    /// The pause before a query is sent again, to the next server; it doubles each time.
    static let firstPause = Duration.milliseconds(400)
    /// The number of times that a query is sent.
    static let mostTries = 5
    /// How long an answer without a time to live is kept.
    private static let shortTime: UInt32 = 30
    private static let longestTime: UInt32 = 86_400
    private static let mostAnswers = 10_000
    private static let mostQueries = 10_000

    /// A query that waits for an upstream server.
    private final class Query {
        let question: [UInt8]
        var message: DNSMessage
        /// The clients that have asked the same meanwhile, with their numbers.
        var clients: [(peer: Endpoint, number: UInt16)]
        var tries = 0
        /// The server that was asked last.
        var server = 0
        var timer: Timer?

        init(_ message: DNSMessage, for peer: Endpoint) {
            (self.message, question) = (message, message.question)
            clients = [(peer, message.number)]
        }
    }

    private struct Answer {
        let message: DNSMessage
        let since: RunLoop.Instant
        let end: RunLoop.Instant
    }

    private let loop: RunLoop
    private var clients: DatagramSocket!
    private var servers: [DatagramSocket] = []
    private var answers: [[UInt8]: Answer] = [:]
    private var queries: [[UInt8]: Query] = [:]
    /// The queries by the numbers that the servers see.
    private var numbered: [UInt16: Query] = [:]
    /// The server that has answered last, which is asked first.
    private var preferred = 0
    private(set) var hits = 0
    private(set) var misses = 0

    init(at address: Endpoint, upstreams: [Endpoint], on loop: RunLoop) throws {
        precondition(!upstreams.isEmpty, "a forwarder has an upstream server")
        self.loop = loop
        clients = try DatagramSocket(address: address, on: loop) { [unowned self] _, bytes, header in
            bytes.withUnsafeBufferPointer { receive(query: Array($0), from: header.sender) }
        }
        for (number, upstream) in upstreams.enumerated() {
            let server = try DatagramSocket(peer: upstream, on: loop) { [unowned self] _, bytes, _ in
                bytes.withUnsafeBufferPointer { receive(answer: Array($0), from: number) }
            }
            // A server that is there, but refuses: the next one is asked at once.
            server.errorHandler = { [unowned self] _, _, _ in refused(by: number) }
            servers.append(server)
        }
    }

    var address: Endpoint { clients.address }

    func close() {
        clients.close()
        for server in servers { server.close() }
        for query in queries.values { query.timer?.invalidate() }
        queries = [:]
        numbered = [:]
    }

    // MARK: Clients

    private func receive(query bytes: [UInt8], from peer: Endpoint) {
        guard let message = DNSMessage(bytes), !message.isAnswer else { return }
        if let answer = answers[message.question], answer.end > loop.now {
            hits += 1
            let age = UInt32((loop.now - answer.since).components.seconds)
            return reply(answer.message.aged(by: age), to: (peer, message.number))
        }
        misses += 1
        if let query = queries[message.question] {
            query.clients.append((peer, message.number))
            return
        }
        guard queries.count < Self.mostQueries else { return reply(message.failure, to: (peer, message.number)) }
        let query = Query(message, for: peer)
        query.server = preferred
        var numbers = loop.randomNumbers
        repeat {
            query.message.number = .random(in: 0 ... .max, using: &numbers)
        } while numbered[query.message.number] != nil
        queries[query.question] = query
        numbered[query.message.number] = query
        ask(query)
    }

    private func reply(_ message: DNSMessage, to client: (peer: Endpoint, number: UInt16)) {
        var message = message
        message.number = client.number
        clients.send(message.bytes, to: client.peer)
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
        servers[query.server].send(query.message.bytes)
    }

    private func askNext(_ query: Query) {
        query.server = (query.server + 1) % servers.count
        ask(query)
    }

    private func refused(by server: Int) {
        // The list changes meanwhile. In the order of their numbers, because that of a dictionary is different each time.
        let refused = queries.values.filter { $0.server == server }.sorted { $0.message.number < $1.message.number }
        for query in refused { askNext(query) }
    }

    private func receive(answer bytes: [UInt8], from server: Int) {
        guard let message = DNSMessage(bytes), message.isAnswer, let query = numbered[message.number],
            query.question == message.question
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
        query.timer?.invalidate()
        queries[query.question] = nil
        numbered[query.message.number] = nil
        clients.sendTogether { for client in query.clients { reply(answer, to: client) } }
    }
}
