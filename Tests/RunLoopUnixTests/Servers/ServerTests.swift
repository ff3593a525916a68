import Glibc
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@testable import RunLoopUnix

private let local = try! Endpoint("127.0.0.1", port: 0)

/// Echoes whatever comes.
@Sendable
private func echo(_ connection: Connection, _ peer: Endpoint) {
    connection.receiveHandler = {
        $0.write($1); return $1.count
    }
}

extension Simulation {
    /// The next text that a peer receives; `nil` at the end.
    fileprivate func answer(to peer: Peer) -> String? {
        var answer: String? = ""
        settle {
            answer = peer.receive()
            return answer != ""
        }
        return answer
    }
}

@Suite("A server keeps its connections")
struct ServerTests {
    @Test("a server echoes by handlers, and counts its open connections")
    func handlers() throws {
        try withSimulation { simulation in
            let server = Server(on: simulation.loop, serve: echo)
            let address = try server.listen(on: local)
            let peers = (0..<3).map { _ in Peer(connectedTo: address) }
            for (number, peer) in peers.enumerated() {
                peer.send("\(number)")
                #expect(simulation.answer(to: peer) == "\(number)")
            }
            #expect(server.connectionCount == 3)
            peers[1].close()
            simulation.settle { server.connectionCount == 2 }
            peers[0].send("still here")
            #expect(simulation.answer(to: peers[0]) == "still here")
            server.close()
            #expect(server.connectionCount == 0)
            #expect(simulation.answer(to: peers[0]) == nil && simulation.answer(to: peers[2]) == nil)
        }
    }

    @Test("a server has a task for each connection, which ends it by its return")
    func tasks() throws {
        try withSimulation { simulation in
            let server = Server(on: simulation.loop) { connection, _ in
                let bytes = try await connection.read() ?? []
                try await connection.write("got \(bytes.count)")
            }
            let address = try server.listen(on: local)
            let peers = (1...2).map { _ in Peer(connectedTo: address) }
            for (number, peer) in peers.enumerated() {
                peer.send(String(repeating: "x", count: number + 3))
                #expect(simulation.answer(to: peer) == "got \(number + 3)")
                #expect(simulation.answer(to: peer) == nil)
            }
            simulation.settle { server.connectionCount == 0 }
            server.close()
        }
    }

    @Test("a connection that is written and finished in the closure sends all of its output")
    func greeting() throws {
        try withSimulation { simulation in
            var visitors = 0
            let server = Server(on: simulation.loop) { connection, _ in
                visitors += 1
                connection.write("You are ")
                connection.write("visitor \(visitors).")
                connection.finish()
            }
            let address = try server.listen(on: local)
            for number in 1...2 {
                let peer = Peer(connectedTo: address)
                #expect(simulation.answer(to: peer) == "You are visitor \(number).")
                #expect(simulation.answer(to: peer) == nil)
            }
            server.close()
        }
    }

    @Test("a server need not be kept: its loop keeps it while it listens")
    func unkept() throws {
        try withSimulation { simulation in
            weak var weakServer: Server?
            func listen() throws -> Endpoint {
                let server = Server(on: simulation.loop, serve: echo)
                weakServer = server
                return try server.listen(on: local)
            }
            let peer = Peer(connectedTo: try listen())
            peer.send("x")
            #expect(simulation.answer(to: peer) == "x" && weakServer != nil)
            weakServer?.close()
            simulation.settle { weakServer == nil }
        }
    }

    // MARK: Errors

    private struct Refusal: Error {}

    @Test("an error of the closure closes the connection and reaches the error handler", arguments: [false, true])
    func failingClosure(isTask: Bool) throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let server =
                isTask
                ? Server(on: loop) { connection, _ in
                    _ = try await connection.read()
                    throw Refusal()
                } : Server(on: loop) { _, _ in throw Refusal() }
            var errors: [any Error] = []
            server.errorHandler = { errors.append($1) }
            let peer = Peer(connectedTo: try server.listen(on: local))
            peer.send("x")
            #expect(simulation.answer(to: peer) == nil)
            simulation.settle { !errors.isEmpty }
            #expect(errors.count == 1 && errors[0] is Refusal && server.connectionCount == 0)
            server.close()
        }
    }

    @Test("a connection that cannot be watched reaches the error handler with the system's number, and is not counted")
    func failingStart() throws {
        try withSimulation { simulation in
            let server = Server(on: simulation.loop, serve: echo)
            var errors: [any Error] = []
            server.errorHandler = { errors.append($1) }
            let address = try server.listen(on: local)
            let file = open("/tmp", O_RDONLY)
            server.parts[0].value.accepted(file, address, by: nil)
            simulation.settle { !errors.isEmpty }
            #expect(errors[0] as? DescriptorError == .notPollable(file) && server.connectionCount == 0)
            server.close()
        }
    }

    @Test("the close handler of a connection that cannot start is called with the system's number")
    func failingStartOfConnection() {
        withSimulation { simulation in
            let file = open("/tmp", O_RDONLY)
            let connection = Connection(adopting: file, on: simulation.loop) { $1.count }
            var reasons: [Connection.CloseReason] = []
            connection.closeHandler = { reasons.append($1) }
            #expect(throws: DescriptorError.notPollable(file)) { try connection.start() }
            guard case .failed(let error as SystemError)? = reasons.first else { return #expect(Bool(false)) }
            #expect(reasons.count == 1 && error.errno == EBADF)
        }
    }

    // MARK: Limits

    @Test("over the limit connections wait, and are served when another has closed")
    func waiting() throws {
        try withSimulation { simulation in
            var options = Server.Options()
            options.maximumConnections = 2
            let server = Server(on: simulation.loop, options: options, serve: echo)
            let address = try server.listen(on: local)
            let peers = (0..<4).map { _ in Peer(connectedTo: address) }
            for peer in peers { peer.send("x") }
            #expect(peers.prefix(2).allSatisfy { simulation.answer(to: $0) == "x" })
            for _ in 0..<10 { simulation.advance(by: .seconds(1)) }
            #expect(server.connectionCount == 2 && peers[2].receive() == "" && peers[3].receive() == "")
            for number in [0, 1] {
                peers[number].close()
                #expect(simulation.answer(to: peers[number + 2]) == "x")
            }
            #expect(server.connectionCount == 2 && server.refusedCount == 0)
            server.close()
        }
    }

    @Test("over the limit connections receive an answer and are closed, if the options say so")
    func refusing() throws {
        try withSimulation { simulation in
            var options = Server.Options()
            options.maximumConnections = 1
            options.overflow = .refuse(answer: Array("no room\n".utf8))
            let server = Server(on: simulation.loop, options: options, serve: echo)
            let address = try server.listen(on: local)
            let first = Peer(connectedTo: address)
            first.send("x")
            #expect(simulation.answer(to: first) == "x")
            let second = Peer(connectedTo: address)
            second.send("y")
            #expect(simulation.answer(to: second) == "no room\n" && simulation.answer(to: second) == nil)
            #expect(server.connectionCount == 1 && server.refusedCount == 1)
            first.close()
            simulation.settle { server.connectionCount == 0 }
            let third = Peer(connectedTo: address)
            third.send("z")
            #expect(simulation.answer(to: third) == "z")
            server.close()
        }
    }

    @Test("a connection that moves, or becomes a side of a relay, leaves its server")
    func leaving() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            var connections: [Connection] = []
            var options = Server.Options()
            options.maximumConnections = 2
            let server = Server(on: loop, options: options) { connection, _ in
                connection.receiveHandler = { $1.count }
                connections.append(connection)
            }
            let address = try server.listen(on: local)
            let peers = (0..<3).map { _ in Peer(connectedTo: address) }
            simulation.settle { connections.count == 2 }
            connections[0].move(to: loop.remote) { loop, moved in
                let connection = Connection(adopting: moved, on: loop) { $1.count }
                do { try connection.start() } catch { Issue.record("\(error)") }
            }
            // The third has the place of the first.
            simulation.settle { connections.count == 3 }
            #expect(server.connectionCount == 2)
            Relay(between: connections[1], and: connections[2])
            #expect(server.connectionCount == 0)
            peers[1].send("through")
            #expect(simulation.answer(to: peers[2]) == "through")
            server.close()
            peers[1].send("still")
            #expect(simulation.answer(to: peers[2]) == "still")
        }
    }

    // MARK: Handlers

    @Test("a receive handler may be replaced, and the new one is offered the rest")
    func replacing() throws {
        try withSimulation { simulation in
            let server = Server(on: simulation.loop) { connection, _ in
                connection.receiveHandler = { connection, _ in
                    connection.receiveHandler = {
                        $0.write("second: "); $0.write($1); return $1.count
                    }
                    connection.receiveAgain()
                    return 1
                }
            }
            let peer = Peer(connectedTo: try server.listen(on: local))
            peer.send("abc")
            #expect(simulation.answer(to: peer) == "second: bc")
            server.close()
        }
    }
}
