import Glibc
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopUnix

@Suite("How connections end")
struct FinishingTests {
    // MARK: The peer's end

    @Test(
        "a peer's end that the system holds behind unread bytes comes after them, once, however long the peer has gone")
    func heldEnd() throws {
        try withSimulation { simulation in
            let (one, other) = makeTCPSockets()
            var (received, ends) = (0, 0)
            var reason: Connection.CloseReason?
            let connection = Connection(adopting: one, on: simulation.loop) {
                received += $1.count
                return $1.count
            }
            connection.endHandler = { connection in
                ends += 1
                connection.finish()
            }
            connection.closeHandler = { reason = $1 }
            connection.pauseReading()
            try connection.start()
            let peer = Peer(other)
            let piece = [UInt8](repeating: 1, count: 1 << 16)
            var (sent, count) = (0, 0)
            while true {
                count = Glibc.send(other, piece, piece.count, Int32(MSG_NOSIGNAL))
                guard count > 0 else { break }
                sent += count
            }
            // The receiver's window is closed: the FIN cannot leave before the bytes that still wait.
            peer.close()
            for _ in 0..<10 {
                simulation.advance(by: .seconds(1))
                #expect(hasConnectionsOnBothSides(one) && ends == 0 && connection.isOpen)
            }
            connection.resumeReading()
            simulation.settle { reason != nil }
            #expect(received == sent && ends == 1)
        }
    }

    /// Returns `true` if TCP has not heard of the peer's end yet (`TCP_ESTABLISHED`).
    private func hasConnectionsOnBothSides(_ descriptor: Int32) -> Bool {
        var state: UInt8 = 0
        var length = socklen_t(1)
        return getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_INFO, &state, &length) == 0 && state == 1
    }

    // MARK: After finish()

    @Test(
        "after finish() unused input is not offered again, whether or not reading was paused", arguments: [false, true])
    func noOffer(pauses: Bool) throws {
        try withSimulation { simulation in
            var calls = 0
            let (connection, peer) = try makePair(on: simulation.loop) { connection, _ in
                calls += 1
                if pauses { connection.pauseReading() }
                return 0
            }
            peer.send("a request")
            simulation.advance(by: .zero)
            #expect(calls == 1)
            peer.send(" and more of it")
            connection.finish()
            simulation.advance(by: .seconds(1))
            connection.receiveAgain()
            if pauses { connection.resumeReading() }
            simulation.advance(by: .seconds(1))
            #expect(calls == 1)
            peer.end()
            simulation.advance(by: .seconds(1))
            #expect(calls == 1 && !connection.isOpen)
        }
    }

    @Test("after finish() no handler but the last is called, though there was a reason")
    func silence() throws {
        try withSimulation { simulation in
            var limits = Connection.Limits()
            (limits.highWatermark, limits.lowWatermark) = (100, 50)
            var calls: [String] = []
            let (connection, peer) = try makePair(on: simulation.loop, limits: limits) {
                calls.append("receive")
                return $1.count
            }
            connection.fullHandler = { _ in calls.append("full") }
            connection.drainHandler = { _ in calls.append("drain") }
            connection.endHandler = { _ in calls.append("end") }
            connection.closeHandler = { calls.append("\($1)") }
            connection.write([UInt8](repeating: 1, count: 10 << 20))
            #expect(calls == ["full"])
            connection.finish()
            peer.send("more")
            peer.end()
            var received = 0
            simulation.settle {
                received += peer.receiveBytes()?.count ?? 0
                return !connection.isOpen
            }
            while let more = peer.receiveBytes(), !more.isEmpty { received += more.count }
            #expect(received == 10 << 20)
            #expect(calls == ["full", "closed"])
        }
    }

    // MARK: Nothing is lost

    @Test("all output written before finish() reaches a slow reader over TCP that continues to send")
    func slowReader() throws {
        try withSimulation { simulation in
            let (one, other) = makeTCPSockets()
            let connection = Connection(adopting: one, on: simulation.loop) { $1.count }
            var reason: Connection.CloseReason?
            connection.closeHandler = { reason = $1 }
            try connection.start()
            let peer = Peer(other)
            connection.write([UInt8](repeating: 7, count: 3_000_000))
            connection.finish()
            var received = 0
            for _ in 0..<40 {
                simulation.advance(by: .milliseconds(250))
                received += peer.receiveBytes(100_000)?.count ?? 0
                peer.send("still here")
            }
            simulation.settle {
                while let more = peer.receiveBytes() {
                    if more.isEmpty { return false }
                    received += more.count
                }
                return true
            }
            #expect(received == 3_000_000)
            peer.close()
            simulation.settle { reason != nil }
            #expect(reason == .closed)
        }
    }

    @Test("two peers that both finish with more than the system takes do not wait for each other")
    func bothFinish() throws {
        try withSimulation { simulation in
            let (one, other) = makeSockets()
            let connections = [one, other].map { Connection(adopting: $0, on: simulation.loop) { $1.count } }
            for connection in connections {
                try connection.start()
                connection.write([UInt8](repeating: 7, count: 2_000_000))
                connection.finish()
            }
            simulation.settle { !connections.contains(where: \.isOpen) }
        }
    }

    @Test("a peer that ends its side lets the connection close at once")
    func peerAnswers() throws {
        try withSimulation { simulation in
            let (one, other) = makeTCPSockets()
            let connection = Connection(adopting: one, on: simulation.loop) { $1.count }
            try connection.start()
            let peer = Peer(other)
            connection.write([UInt8](repeating: 7, count: 10 << 20))
            connection.finish()
            simulation.settle {
                while let more = peer.receiveBytes() {
                    if more.isEmpty { return false }
                }
                return true
            }
            peer.end()
            simulation.settle { !connection.isOpen }
            #expect(simulation.now < ms(100))
        }
    }

    @Test("a peer that takes nothing is given up after half a minute")
    func givenUp() throws {
        try withSimulation { simulation in
            let (one, other) = makeTCPSockets()
            let connection = Connection(adopting: one, on: simulation.loop) { $1.count }
            var closed: RunLoop.Instant?
            connection.closeHandler = { _, _ in closed = simulation.now }
            try connection.start()
            // This end's buffer takes all of it, and the peer's does not.
            for (socket, option, size) in [(one, SO_SNDBUF, 1 << 20), (other, SO_RCVBUF, 1 << 12)] {
                RealSystem.shared.setOption(socket, SOL_SOCKET, option, Int32(size))
            }
            connection.write([UInt8](repeating: 7, count: 100_000))
            try #require(connection.pendingOutput == 0, "the system takes all at once")
            let begin = simulation.now
            connection.finish()
            simulation.advance(by: .seconds(29))
            #expect(closed == nil)
            simulation.advance(by: .seconds(2))
            #expect(closed != nil)
            #expect(closed.map { $0 - begin >= .seconds(30) } == true)
            close(other)
        }
    }

    @Test("a peer that has everything and continues to send is waited for, half a minute at most")
    func talkative() throws {
        try withSimulation { simulation in
            let (one, other) = makeTCPSockets()
            let connection = Connection(adopting: one, on: simulation.loop) { $1.count }
            var closed: RunLoop.Instant?
            connection.closeHandler = { _, _ in closed = simulation.now }
            try connection.start()
            // Otherwise the peer's output would wait, in real time, for an acknowledgement of its earlier output.
            RealSystem.shared.setOption(other, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
            let peer = Peer(other)
            peer.send("unread")
            simulation.loop.add(
                Timer(timeInterval: .milliseconds(70), repeats: true) { timer in
                    guard closed == nil else { return timer.invalidate() }
                    peer.send("more")
                }, forMode: .default)
            connection.write("all")
            connection.finish()
            simulation.advance(by: .seconds(29))
            #expect(closed == nil)
            simulation.advance(by: .seconds(2))
            #expect(closed != nil)
            #expect(peer.receive() == "all")
        }
    }

    @Test("input that the peer sent before closing is offered, although writing to it fails", arguments: [true, false])
    func writeFails(isTCP: Bool) throws {
        try withSimulation { simulation in
            let (one, other) = isTCP ? makeTCPSockets() : makeSockets()
            var received = 0
            var reasons: [Connection.CloseReason] = []
            let connection = Connection(adopting: one, on: simulation.loop) {
                $0.write("an answer")
                received += $1.count
                return $1.count
            }
            connection.closeHandler = { reasons.append($1) }
            sendAndClose(other, count: 100_000)
            // A TCP peer that has closed sends a reset when data arrives.
            if isTCP { #expect(eventually { send(one, "x", 1, Int32(MSG_NOSIGNAL)) < 0 }) }
            try connection.start()
            simulation.settle { !connection.isOpen }
            #expect(received == 100_000)
            #expect(reasons == [.failed(SystemError("write to the connection", errno: EPIPE))])
        }
    }

    /// Sends more than a connection reads at a time.
    private func sendAndClose(_ socket: Int32, count: Int) {
        let bytes = [UInt8](repeating: 7, count: count)
        #expect(send(socket, bytes, count, 0) == count)
        #expect(eventually { RealSystem.shared.unsentOutput(socket) == 0 })
        close(socket)
    }

    // MARK: The peer's end

    @Test(
        "the end handler is called though this side had ended before, and then the connection closes",
        arguments: StreamKind.allCases, [false, true])
    func endAfterFinishWriting(kind: StreamKind, answers: Bool) throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let (one, other) = kind.makePair(on: loop)
            var calls: [String] = []
            var text = ""
            let origin = RunLoop.Origin(file: #fileID, line: #line)
            let connection = Connection(one, on: loop, inModes: .common, limits: .init(), origin: origin) {
                text += $1.text
                return $1.count
            }
            connection.endHandler = { _ in calls.append("end") }
            connection.closeHandler = { calls.append("\($1)") }
            try connection.start()
            let peer = Connection(other, on: loop, inModes: .common, limits: .init(), origin: origin) { $1.count }
            peer.endHandler = { peer in
                loop.perform(afterDelay: .seconds(1)) {
                    if answers { peer.write("answer") }
                    peer.finishWriting()
                }
            }
            try peer.start()
            connection.write("all")
            connection.finishWriting()
            simulation.settle {
                simulation.advance(by: .seconds(1))
                return !connection.isOpen
            }
            #expect(calls == ["end", "ended"])
            #expect(text == (answers ? "answer" : ""))
        }
    }

    // MARK: Reset

    @Test("a reset is an error for the peer, and loses the waiting bytes")
    func reset() throws {
        try withSimulation { simulation in
            let (one, other) = makeTCPSockets()
            let connection = Connection(adopting: one, on: simulation.loop) { $1.count }
            var reasons: [Connection.CloseReason] = []
            connection.closeHandler = { reasons.append($1) }
            try connection.start()
            let peer = Peer(other)
            connection.write("a part")
            #expect(eventually { peer.receive() == "a part" })
            connection.write([UInt8](repeating: 7, count: 20 << 20))
            connection.reset()
            connection.reset()
            #expect(reasons == [.closed] && !connection.isOpen)
            var byte: UInt8 = 0
            #expect(
                eventually {
                    while recv(other, &byte, 1, 0) > 0 {}
                    return errno == ECONNRESET
                })
        }
    }

    @Test("of a connection that is closed or reset the first counts", arguments: [true, false])
    func first(isReset: Bool) throws {
        try withSimulation { simulation in
            let (one, other) = makeTCPSockets()
            let connection = Connection(adopting: one, on: simulation.loop) { $1.count }
            try connection.start()
            if isReset { connection.reset() } else { connection.close() }
            if isReset { connection.close() } else { connection.reset() }
            let peer = Peer(other)
            var status = 0
            #expect(
                eventually {
                    var byte: UInt8 = 0
                    status = recv(other, &byte, 1, 0)
                    return status == 0 || errno == ECONNRESET
                })
            #expect(status == (isReset ? -1 : 0))
            peer.close()
        }
    }
}
