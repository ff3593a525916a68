import Glibc
import RunLoopKit
import RunLoopSimulation
import RunLoopTLS
import TLSTestSupport
import TestSupport
import Testing

@testable import RunLoopUnix

@Suite("TLS connections that move", .timeLimit(.minutes(5)))
struct TLSMovingTests {
    /// Moves on after a given number of handshake steps or bytes each, and echoes.
    private struct Traveller: Sendable {
        let loops: [RunLoop.Remote]
        let seed: UInt64
        let moves = Counter()
        let log = Log<String>()

        func begin(_ connection: Connection, hops: Int) {
            connection.handshakeHandler = {
                log("secured \($0.tls!.version)")
                if hops % 2 == 0 { move($0, hops: hops) }
            }
            connection.closeHandler = { if $1 != .moved { log("\($1)") } }
            do { try connection.start() } catch { Issue.record("\(error)") }
            // In the middle of the handshake.
            if hops > 0 { connection.loop.perform { move(connection, hops: hops - 1) } }
        }

        func makeHandler() -> Connection.ReceiveHandler {
            var generator = SeededGenerator(seed: seed &+ UInt64(moves.value))
            return { connection, bytes in
                let used = Int.random(in: 0...bytes.count, using: &generator)
                connection.write(bytes.extracting(..<used))
                if Int.random(in: 0..<3, using: &generator) == 0 { move(connection, hops: 0) }
                connection.receiveAgain()
                return used
            }
        }

        func move(_ connection: Connection, hops: Int) {
            connection.move(to: loops[moves.add() % loops.count]) { loop, moved in
                begin(Connection(adopting: moved, on: loop, receive: makeHandler()), hops: hops)
            }
        }
    }

    @Test(
        "a session moves with its connection, also in the middle of the handshake, and every byte comes back",
        arguments: [0, 5, 12])
    func travels(hops: Int) throws {
        let seed = UInt64.random(in: 0 ... .max)
        let contexts = try Contexts()
        let group = try LoopGroup(count: 3)
        let traveller = Traveller(loops: group.loops, seed: seed)
        let bytes = randomBytes(1_000_000, seed: seed)
        let (one, other) = makeSockets()
        let server = contexts.server
        group.loops[0].perform { loop in
            do {
                let connection = try Connection(
                    adopting: one, on: loop, tls: server, receive: traveller.makeHandler())
                traveller.begin(connection, hops: hops)
            } catch { Issue.record("\(error)") }
        }
        let client = contexts.client
        let received = Log<[UInt8]>()
        // The echo is read while more is sent.
        var limits = Connection.Limits()
        limits.readsWhileFull = true
        let peers = try LoopGroup(count: 1)
        peers.loops[0].perform { [limits] loop in
            do {
                let connection = try Connection(
                    adopting: other, on: loop, limits: limits, tls: client, serverName: "localhost"
                ) {
                    received.append($1.withUnsafeBufferPointer { Array($0) })
                    return $1.count
                }
                connection.endHandler = { _ in }
                connection.closeHandler = { traveller.log("client: \($1)") }
                try connection.start()
                connection.write(bytes)
                connection.finishWriting()
            } catch { Issue.record("\(error)") }
        }
        #expect(eventually { traveller.log.entries.count == 3 }, "seed \(seed): \(traveller.log.entries)")
        #expect(Set(traveller.log.entries) == ["secured TLSv1.3", "ended", "client: ended"], "seed \(seed)")
        #expect(areSame(received.entries.flatMap(\.self), bytes), "seed \(seed)")
        #expect(traveller.moves.value > hops, "seed \(seed)")
        for group in [group, peers] {
            group.stop()
            group.join()
        }
    }

    /// Moves within the loop, and then `hops` more times.
    @Sendable
    private static func hop(_ connection: Connection, _ name: String, _ log: Log<String>, more hops: Int) {
        connection.move(to: connection.loop.remote) { loop, moved in
            let next = Connection(adopting: moved, on: loop) {
                log("\(name): \($1.count) bytes")
                $0.finish()
                return $1.count
            }
            next.handshakeHandler = { _ in log("\(name): secured, \(hops)") }
            next.closeHandler = { if $1 != .moved { log("\(name): \($1)") } }
            do { try next.start() } catch { Issue.record("\(error)") }
            if hops > 0 { loop.perform { hop(next, name, log, more: hops - 1) } }
        }
    }

    @Test("both sides go to another connection after each step of the handshake, the same way in every run")
    func handshake() throws {
        func run() throws -> [String] {
            let log = Log<String>()
            try withSimulation { simulation in
                let (server, client) = try Contexts().connect(on: simulation.loop)
                client.connection.write("hello")
                Self.hop(server.connection, "server", log, more: 8)
                Self.hop(client.connection, "client", log, more: 7)
                simulation.settle { log.entries.count == 5 }
                #expect(server.reason == .moved && client.reason == .moved)
            }
            return log.entries
        }
        let first = try run()
        #expect(first.contains("server: 5 bytes"), "\(first)")
        #expect(
            first.contains { $0.hasPrefix("client: secured") } && first.contains { $0.hasPrefix("server: secured") })
        #expect(try run() == first)
    }

    @Test("a handshake that stops after a move still has its time limit")
    func timeLimit() throws {
        try withSimulation { simulation in
            var options = TLSOptions()
            options.handshakeTimeout = .seconds(1)
            let contexts = try Contexts(options)
            let (one, other) = makeSockets()
            defer { close(other) }
            let side = try Side.server(one, on: simulation.loop, contexts.server)
            let log = Log<String>()
            simulation.advance(by: .milliseconds(500))
            side.connection.move(to: simulation.loop.remote) { loop, moved in
                let next = Connection(adopting: moved, on: loop) { $1.count }
                next.closeHandler = { log("\(loop.now) \($1)") }
                do { try next.start() } catch { Issue.record("\(error)") }
            }
            simulation.advance(by: .milliseconds(999))
            #expect(log.entries.isEmpty && side.connection.tls == nil)
            simulation.advance(by: .milliseconds(1))
            #expect(log.entries.count == 1 && log.entries[0].contains("handshake"), "\(log.entries)")
        }
    }
}
