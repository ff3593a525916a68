import RunLoopExploration
import RunLoopKit
import RunLoopUnix

/// A client of the cluster, which records its operations. It asks one member, usually the leader, and does not ask
/// again without an answer, because then its request may have been carried out.
final class ClusterClient {
    /// The error for a request that was not carried out, and will not be; or that would have changed nothing.
    struct Refused: Error {}
    /// The error for a request that may have been carried out, or may be later.
    struct Lost: Error {}

    private let name: String
    private let loop: RunLoop
    private let history: History<RegisterModel>
    private let members: [String]
    private var random: RunLoop.RandomNumbers
    private var connection: Connection?
    private var lines: Connection.Lines?
    private var leader: String?

    init(_ name: String, of members: [String], on loop: RunLoop, _ history: History<RegisterModel>) {
        (self.name, self.members, self.loop, self.history) = (name, members, loop, history)
        random = loop.randomNumbers
    }

    /// Performs an operation once.
    nonisolated(nonsending) func perform(_ operation: RegisterModel.Operation) async throws -> String? {
        try await history.record(operation, by: name, refusedIf: { (error: any Error) in error is Refused }) {
            switch operation {
            case .set(let key, let value): return try await ask("set \(key) \(value)") ?? value
            case .get(let key): do { return try await ask("get \(key)") } catch { throw Refused() }
            }
        }
    }

    /// Performs random operations for some time, or reads only.
    nonisolated(nonsending) func work(
        until end: RunLoop.Instant, onlyReads: Bool, _ key: (Int) -> String
    ) async throws {
        var number = 0
        while loop.now < end {
            let key = key(Int.random(in: 0...9, using: &random))
            number += 1
            let operation: RegisterModel.Operation =
                !onlyReads && Bool.random(using: &random) ? .set(key, to: "\(name).\(number)") : .get(key)
            var pause = 1...150
            do { _ = try await perform(operation) } catch is Lost { pause = 100...1_000 } catch {}
            try await loop.clock.sleep(for: .milliseconds(Int.random(in: pause, using: &random)))
            if Int.random(in: 0..<8, using: &random) == 0 { leave() }
        }
        leave()
    }

    func leave() {
        connection?.close()
        (connection, lines, leader) = (nil, nil, nil)
    }

    /// - Returns: the value; `nil` if there is none, or if the request was a change.
    private nonisolated(nonsending) func ask(_ request: String) async throws -> String? {
        let (connection, lines) = try await connected()
        var words: [Substring] = []
        do {
            try await connection.write(request + "\n")
            words = try await lines.next()?.split(separator: " ") ?? []
        } catch {
            leave()
            throw Lost()
        }
        switch words.first {
        case "ok", "none": return nil
        case "value": return String(words[1])
        case "leader", "no":
            leave()
            leader = members.first { words[1].hasPrefix("\(Cluster.address(of: $0)):") }
            throw Refused()
        default:
            leave()
            throw Lost()
        }
    }

    private nonisolated(nonsending) func connected() async throws -> (Connection, Connection.Lines) {
        if let connection, let lines, connection.isOpen { return (connection, lines) }
        let host = leader ?? members.randomElement(using: &random)!
        leader = nil
        var limits = Connection.Limits()
        limits.idleTimeout = .milliseconds(700)
        do {
            let connection = try await Connection.connect(
                to: Endpoint(Cluster.address(of: host), port: Cluster.port), on: loop, limits: limits,
                timeout: .milliseconds(200))
            let lines = connection.lines()
            (self.connection, self.lines) = (connection, lines)
            return (connection, lines)
        } catch {
            throw Refused()
        }
    }
}
