import Glibc
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@testable import RunLoopUnix

private let local = try! Endpoint("127.0.0.1", port: 0)

/// Answers each line.
@Sendable
private func answer(_ connection: Connection, _ peer: Endpoint) {
    connection.receiveHandler = Framing.lines { connection, line in connection.write("re: \(line.text)\n") }
}

/// Answers each line, as a task.
private nonisolated(nonsending) func answerAsTask(_ connection: Connection, _ peer: Endpoint) async throws {
    for try await line in connection.lines() { try await connection.write("re: \(line)\n") }
}

extension Simulation {
    /// Everything that a peer receives until the end of the stream.
    fileprivate func all(to peer: Peer) -> String {
        var text = ""
        settle {
            while let piece = peer.receive() {
                if piece.isEmpty { return false }
                text += piece
            }
            return true
        }
        return text
    }
}

@Suite("A server shuts down in order")
struct ServerShutDownTests {
    private func server(_ isTask: Bool, on loop: RunLoop) -> Server {
        isTask ? Server(on: loop, serve: answerAsTask) : Server(on: loop, serve: answer)
    }

    @Test("connections that wait to be accepted are served, and their requests answered", arguments: [false, true])
    func backlog(isTask: Bool) throws {
        try withSimulation { simulation in
            let server = server(isTask, on: simulation.loop)
            let address = try server.listen(on: local)
            let peers = (0..<100).map { number in
                let peer = Peer(connectedTo: address)
                peer.send("\(number)\n")
                return peer
            }
            var isDown = false
            server.shutDown { isDown = true }
            #expect(!isDown)
            for (number, peer) in peers.enumerated() { #expect(simulation.all(to: peer) == "re: \(number)\n") }
            simulation.settle { isDown }
            #expect(server.connectionCount == 0)
            let late = socket(AF_INET, SocketKind.stream, 0)
            defer { close(late) }
            #expect(address.withSystemAddress { connect(late, $0, $1) } == -1 && errno == ECONNREFUSED)
        }
    }

    @Test(
        "a connection that has been used closes at once, one to which nothing has come has a second",
        arguments: [false, true])
    func idle(isTask: Bool) throws {
        try withSimulation { simulation in
            let server = server(isTask, on: simulation.loop)
            let address = try server.listen(on: local)
            let (used, silent, slow) = (
                Peer(connectedTo: address), Peer(connectedTo: address), Peer(connectedTo: address)
            )
            used.send("a\n")
            simulation.settle { used.receive() == "re: a\n" }
            simulation.settle { server.connectionCount == 3 }
            let start = simulation.now
            var down: RunLoop.Instant?
            server.shutDown { down = simulation.now }
            #expect(simulation.all(to: used) == "" && server.connectionCount == 2 && simulation.now == start)
            simulation.advance(by: .milliseconds(900))
            slow.send("b\n")
            #expect(simulation.all(to: slow) == "re: b\n" && server.connectionCount == 1 && down == nil)
            simulation.advance(by: .milliseconds(100))
            #expect(simulation.all(to: silent) == "")
            simulation.settle { down != nil }
            #expect(down == start + .seconds(1))
        }
    }

    @Test("a request that has begun is answered, by a task that has time for it", arguments: [false, true])
    func lateAnswer(isTask: Bool) throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let server =
                isTask
                ? Server(on: loop) { connection, _ in
                    while let bytes = try await connection.read() {
                        try await loop.clock.sleep(for: .seconds(5))
                        try await connection.write(bytes)
                    }
                }
                : Server(on: loop) { connection, _ in
                    var (isBusy, isLast) = (false, false)
                    connection.receiveHandler = { connection, bytes in
                        let bytes = bytes.withUnsafeBufferPointer { Array($0) }
                        isBusy = true
                        loop.perform(afterDelay: .seconds(5)) {
                            isBusy = false
                            connection.write(bytes)
                            if isLast { connection.finish() }
                        }
                        return bytes.count
                    }
                    connection.endHandler = { connection in
                        isLast = true
                        if !isBusy { connection.finish() }
                    }
                }
            var errors = 0
            server.errorHandler = { _, _ in errors += 1 }
            let peer = Peer(connectedTo: try server.listen(on: local))
            peer.send("x")
            simulation.settle { server.connectionCount == 1 }
            simulation.advance(by: .seconds(1))
            var isDown = false
            server.shutDown { isDown = true }
            simulation.advance(by: .seconds(3))
            #expect(server.connectionCount == 1 && !isDown)
            simulation.advance(by: .seconds(2))
            #expect(simulation.all(to: peer) == "x")
            simulation.settle { isDown }
            #expect(errors == 0)
        }
    }

    @Test("after the deadline the rest is closed, and tasks are cancelled", arguments: [false, true])
    func deadline(isTask: Bool) throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            var log: [String] = []
            let server =
                isTask
                ? Server(on: loop) { _, _ in
                    do { try await loop.clock.sleep(for: .seconds(1000)) } catch { log.append("\(error)") }
                }
                : Server(on: loop) { connection, _ in
                    connection.receiveHandler = { $1.count }
                    connection.endHandler = { _ in log.append("end") }
                    connection.closeHandler = { log.append("\($1)") }
                }
            server.errorHandler = { log.append("\($1)") }
            let peer = Peer(connectedTo: try server.listen(on: local))
            peer.send("x")
            simulation.settle { server.connectionCount == 1 }
            simulation.advance(by: .seconds(1))
            let start = simulation.now
            var down: RunLoop.Instant?
            server.shutDown(within: .seconds(10)) { down = simulation.now }
            simulation.advance(by: .seconds(9))
            #expect(server.connectionCount == 1)
            simulation.advance(by: .seconds(1))
            #expect(simulation.all(to: peer) == "")
            simulation.settle { down != nil }
            #expect(down == start + .seconds(10) && log == (isTask ? ["CancellationError()"] : ["end", "closed"]))
        }
    }

    @Test("no answer is cut off, although the peer keeps sending")
    func talkingPeer() throws {
        try withSimulation { simulation in
            let size = 3 << 20
            let server = Server(on: simulation.loop) { connection, _ in
                connection.receiveHandler = { $1.count }
                connection.endHandler = { connection in
                    connection.write([UInt8](repeating: 7, count: size))
                    connection.finishWriting()
                }
            }
            let peer = Peer(connectedTo: try server.listen(on: local))
            peer.send("x")
            simulation.settle { server.connectionCount == 1 }
            simulation.advance(by: .zero)
            server.shutDown()
            var received = 0
            simulation.settle {
                _ = Glibc.send(peer.descriptor, "more", 4, Int32(MSG_NOSIGNAL))
                while let bytes = peer.receiveBytes(1 << 16) {
                    if bytes.isEmpty { return false }
                    received += bytes.count
                }
                return true
            }
            #expect(received == size)
            peer.close()
            simulation.settle { server.connectionCount == 0 }
        }
    }

    @Test("connections that waited for room are served while the others finish")
    func waitingForRoom() throws {
        try withSimulation { simulation in
            var options = Server.Options()
            options.maximumConnections = 2
            let server = Server(on: simulation.loop, options: options, serve: answer)
            let address = try server.listen(on: local)
            let peers = (0..<10).map { number in
                let peer = Peer(connectedTo: address)
                peer.send("\(number)\n")
                return peer
            }
            simulation.settle { server.connectionCount == 2 }
            simulation.advance(by: .zero)
            var isDown = false
            server.shutDown { isDown = true }
            for (number, peer) in peers.enumerated() { #expect(simulation.all(to: peer) == "re: \(number)\n") }
            simulation.settle { isDown }
        }
    }

    @Test("a daemon drains its server without code of its own", arguments: [false, true])
    func daemon(isTask: Bool) throws {
        let manager = try ServiceManager(environment: [:])
        try withSimulation { simulation in
            let daemon = Daemon(loop: simulation.loop, manager: manager)
            let server = server(isTask, on: simulation.loop)
            let address = try server.listen(on: local)
            daemon.add(server)
            let peers = (0..<20).map { number in
                let peer = Peer(connectedTo: address)
                peer.send("\(number)\n")
                return peer
            }
            daemon.stop()
            #expect(daemon.run() == 0)
            #expect(daemon.abandoned == [] && server.connectionCount == 0)
            for (number, peer) in peers.enumerated() { #expect(simulation.all(to: peer) == "re: \(number)\n") }
        }
    }

    @Test("a daemon closes the connections that outlive its limit, before the other hooks of its last stage")
    func daemonsLimit() throws {
        let manager = try ServiceManager(environment: [:])
        try withSimulation { simulation in
            let daemon = Daemon(loop: simulation.loop, manager: manager, drainLimit: .seconds(10))
            let server = Server(on: simulation.loop) { connection, _ in
                connection.receiveHandler = { $1.count }
                connection.endHandler = { _ in }
            }
            let peer = Peer(connectedTo: try server.listen(on: local))
            var left: Int?
            daemon.onStop(.exit) { left = server.connectionCount }
            daemon.add(server)
            let start = simulation.now
            daemon.stop()
            #expect(daemon.run() == 0)
            #expect(daemon.abandoned == ["server"] && left == 0 && simulation.now == start + .seconds(10))
            #expect(simulation.all(to: peer) == "")
        }
    }

    @Test("a task awaits the end of a server")
    func awaited() async {
        await onLoop { loop in
            let server = Server(on: loop, serve: answer)
            let peer = Peer(connectedTo: try server.listen(on: local))
            peer.send("x\n")
            try await server.shutDown(within: .seconds(60))
            #expect(server.connectionCount == 0 && peer.receive() == "re: x\n")
        }
    }
}

@Suite("A server on a group", .timeLimit(.minutes(5)))
struct GroupServerTests {
    private func text(from peer: Peer) -> String? {
        var answer: String? = ""
        _ = eventually {
            RunLoop.current.poll()
            answer = peer.receive()
            return answer != ""
        }
        return answer
    }

    @Test(
        "connections are spread over the loops, counted together, and finished",
        arguments: [nil, LoopGroup.Spread.inTurn])
    func life(spread: LoopGroup.Spread?) throws {
        let group = try LoopGroup(count: 2, name: "worker")
        defer { end(group) }
        let names = Log<String>()
        let server = try Server(on: group) { connection, peer in
            names(RunLoop.current.name!)
            answer(connection, peer)
        }
        let address = try server.listen(on: local, spread: spread)
        let peers = (0..<20).map { _ in Peer(connectedTo: address) }
        for (number, peer) in peers.enumerated() {
            peer.send("\(number)\n")
            #expect(text(from: peer) == "re: \(number)\n")
        }
        #expect(server.connectionCount == 20)
        if spread == .inTurn { #expect(Set(names.entries).count == 2) }
        let late = (0..<20).map { number in
            let peer = Peer(connectedTo: address)
            peer.send("late \(number)\n")
            return peer
        }
        var isDown = false
        server.shutDown { isDown = true }
        for (number, peer) in late.enumerated() { #expect(text(from: peer) == "re: late \(number)\n") }
        #expect((peers + late).allSatisfy { text(from: $0) == nil })
        #expect(
            eventually {
                RunLoop.current.poll(); return isDown
            } && server.connectionCount == 0)
    }

    @Test("a server does not keep its loop running when the loops of its group have ended")
    func endedGroup() {
        onThread {
            let group = try! LoopGroup(count: 2, name: "worker")
            let server = try! Server(on: group, serve: answer)
            let peer = Peer(connectedTo: try! server.listen(on: local))
            peer.send("x\n")
            #expect(text(from: peer) == "re: x\n")
            group.stop()
            group.join()
            let loop = RunLoop.current
            #expect(loop.run(in: .default, until: loop.now + .seconds(30)) == .finished)
            #expect(server.connectionCount == 0 && text(from: peer) == nil)
        }
    }

    @Test("the limit is for all loops together", arguments: [Server.Overflow.wait, .refuse(answer: [33])])
    func limit(overflow: Server.Overflow) throws {
        let group = try LoopGroup(count: 3, name: "worker")
        defer { end(group) }
        var options = Server.Options()
        (options.maximumConnections, options.overflow) = (4, overflow)
        let server = try Server(on: group, options: options) { connection, _ in
            try await connection.write("hello")
            _ = try await connection.read()
        }
        let address = try server.listen(on: local, spread: .inTurn)
        let peers = (0..<12).map { _ in Peer(connectedTo: address) }
        if overflow == .wait {
            serveInTurn(peers, by: server)
        } else {
            let answers = peers.map { text(from: $0) }
            #expect(answers.count { $0 == "hello" } == 4 && answers.count { $0 == "!" } == 8)
            #expect(server.refusedCount == 8)
        }
        var isDown = false
        server.shutDown { isDown = true }
        #expect(
            eventually {
                RunLoop.current.poll(); return isDown
            })
    }

    /// Ends a group, and takes what its threads have posted: other tests use this thread's loop, too.
    private func end(_ group: LoopGroup) {
        group.stop()
        group.join()
        RunLoop.current.poll()
    }

    /// Ends the peers as they are served, so that others have room.
    private func serveInTurn(_ peers: [Peer], by server: Server) {
        var served: Set<Int> = []
        while served.count < peers.count {
            _ = eventually {
                RunLoop.current.poll()
                for (number, peer) in peers.enumerated() where !served.contains(number) {
                    guard peer.receive() == "hello" else { continue }
                    served.insert(number)
                    #expect(server.connectionCount <= 4)
                    peer.end()
                    return true
                }
                return false
            }
        }
    }
}
