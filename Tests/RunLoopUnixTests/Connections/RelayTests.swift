import Glibc
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopUnix

/// A relay between two streams of one kind, and two connections of the test at its far ends.
private final class Relayed {
    let ends: [Connection]
    let relay: Relay
    private(set) var received: [[UInt8]] = [[], []]
    private(set) var reasons: [Connection.CloseReason?] = [nil, nil]
    private(set) var outcome: Connection.CloseReason?

    init(
        _ kind: StreamKind, on loop: RunLoop, idleTimeout: Duration? = nil, starts: Bool = true,
        before: (Connection, Connection) -> Void = { _, _ in }
    ) throws {
        let pairs = [kind.makePair(on: loop), kind.makePair(on: loop)]
        var limits = Connection.Limits()
        limits.readsWhileFull = true
        let receivers = (0..<2).map { _ in Box<(Span<UInt8>) -> Void>() }
        ends = pairs.enumerated().map { index, pair in
            Connection(
                pair.0, on: loop, inModes: .common, limits: limits, origin: RunLoop.Origin(file: #fileID, line: #line)
            ) { _, bytes in
                receivers[index].value?(bytes)
                return bytes.count
            }
        }
        let inner = pairs.map {
            Connection(
                $0.1, on: loop, inModes: .common, limits: Connection.Limits(),
                origin: RunLoop.Origin(file: #fileID, line: #line)
            ) { _, _ in 0 }
        }
        for connection in ends + (starts ? inner : []) { try connection.start() }
        before(inner[0], inner[1])
        let outcome = Box<(Connection.CloseReason) -> Void>()
        relay = Relay(between: inner[0], and: inner[1], idleTimeout: idleTimeout) { outcome.value?($1) }
        outcome.value = { [weak self] in self?.outcome = $0 }
        for index in 0..<2 {
            receivers[index].value = { [weak self] bytes in
                bytes.withUnsafeBufferPointer { self?.received[index] += $0 }
            }
            ends[index].endHandler = { _ in }
            ends[index].closeHandler = { [weak self] in self?.reasons[index] = $1 }
        }
    }

    var hasEnded: Bool { outcome != nil && reasons.allSatisfy { $0 != nil } }
}

private final class Box<Value> {
    var value: Value?
}

@Suite("Relays")
struct RelayTests {
    private static let pattern = randomBytes(6 << 20, seed: 1)

    @Test(
        "much goes both ways at once, arrives as it was, and the ends are passed on",
        arguments: [StreamKind.memory, .sockets, .pipes])
    func bothWays(kind: StreamKind) throws {
        try withSimulation { simulation in
            let relayed = try Relayed(kind, on: simulation.loop)
            let messages = [Self.pattern, Array(Self.pattern.reversed())]
            for (end, message) in zip(relayed.ends, messages) {
                end.write(message)
                end.finishWriting()
            }
            simulation.settle { relayed.hasEnded }
            let isExact = relayed.received[0] == messages[1] && relayed.received[1] == messages[0]
            #expect(isExact)
            #expect(relayed.reasons == [.ended, .ended] && relayed.outcome == .ended)
            #expect(relayed.relay.bytesFromFirst == messages[0].count)
            #expect(relayed.relay.bytesFromSecond == messages[1].count)
        }
    }

    @Test(
        "a side that reads nothing stops those who write to it, holds little, and leaves the other direction alone",
        arguments: [StreamKind.memory, .sockets, .pipes])
    func slowReader(kind: StreamKind) throws {
        try withSimulation { simulation in
            let relayed = try Relayed(kind, on: simulation.loop)
            relayed.ends[1].pauseReading()
            for end in relayed.ends { end.write(Self.pattern) }
            simulation.settle { relayed.received[0].count == Self.pattern.count }
            let isExact = areSame(relayed.received[0], Self.pattern)
            #expect(isExact, "the direction that is read goes on")
            #expect(relayed.received[1].isEmpty)
            // The buffers of the relay and the streams are bounded, so most of the bytes have not left their writer.
            #expect(relayed.ends[0].pendingOutput > Self.pattern.count / 2)
            relayed.ends[1].resumeReading()
            for end in relayed.ends { end.finishWriting() }
            simulation.settle { relayed.hasEnded }
            #expect(relayed.received[1].count == Self.pattern.count && relayed.outcome == .ended)
        }
    }

    @Test("a side can end its output and still be written to", arguments: [StreamKind.memory, .sockets])
    func halfEnd(kind: StreamKind) throws {
        try withSimulation { simulation in
            let relayed = try Relayed(kind, on: simulation.loop)
            relayed.ends[1].endHandler = { connection in
                connection.write("an answer to all of it")
                connection.finishWriting()
            }
            relayed.ends[0].write("a question")
            relayed.ends[0].finishWriting()
            simulation.settle { relayed.hasEnded }
            #expect(relayed.received == [Array("an answer to all of it".utf8), Array("a question".utf8)])
        }
    }

    @Test("a connection's unused input and unsent output go first")
    func handedOver() throws {
        try withSimulation { simulation in
            let peer = Box<Connection>()
            let (one, other) = MemoryStream.pair()
            let first = Connection(
                one, on: simulation.loop, inModes: .common, limits: Connection.Limits(),
                origin: RunLoop.Origin(file: #fileID, line: #line)
            ) { _, bytes in
                #expect(bytes.text == "GET / and more")
                return 6
            }
            try first.start()
            var received = ""
            peer.value = Connection(
                other, on: simulation.loop, inModes: .common, limits: Connection.Limits(),
                origin: RunLoop.Origin(file: #fileID, line: #line)
            ) { _, bytes in
                received += bytes.text
                return bytes.count
            }
            try peer.value!.start()
            peer.value!.write("GET / and more")
            simulation.advance(by: .zero)
            let (two, far) = makeSockets()
            let second = Connection(adopting: two, on: simulation.loop) { $1.count }
            let upstream = Peer(far)
            first.write("waits, for it is written with the relay's bytes behind it;")
            Relay(between: first, and: second)
            #expect(!first.isOpen && !second.isOpen)
            upstream.send(" an answer")
            simulation.advance(by: .zero)
            #expect(upstream.receive() == "and more")
            #expect(received == "waits, for it is written with the relay's bytes behind it; an answer")
            peer.value!.close()
            simulation.advance(by: .zero)
            upstream.close()
        }
    }

    @Test("an end that came before the relay is passed on, though a whole turn is sent before it")
    func endBehindATurn() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            func connection(on stream: MemoryStream) -> Connection {
                Connection(
                    stream, on: loop, inModes: .common, limits: Connection.Limits(),
                    origin: RunLoop.Origin(file: #fileID, line: #line)
                ) { $1.count }
            }
            let (one, client) = MemoryStream.pair()
            let (other, server) = MemoryStream.pair(capacity: 1 << 20)
            let (first, second) = (connection(on: one), connection(on: other))
            var hasEnded = false
            first.endHandler = { _ in hasEnded = true }
            try first.start()
            _ = client.endWriting()
            simulation.advance(by: .zero)
            #expect(hasEnded)
            second.write([UInt8](repeating: 1, count: 1 << 20))
            let relay = Relay(between: first, and: second)
            simulation.advance(by: .zero)
            var bytes = [UInt8](repeating: 0, count: 1 << 20)
            let results = bytes.withUnsafeMutableBytes { [server.read(into: $0), server.read(into: $0)] }
            #expect(results == [.done(1 << 20), .ended])
            _ = server.endWriting()
            simulation.advance(by: .zero)
            #expect(!relay.isOpen)
        }
    }

    @Test("small pieces are copied, large ones go through a pipe, and so do some small ones behind them")
    func pieces() throws {
        let sockets = [makeSockets(), makeSockets()]
        for (one, other) in sockets { for descriptor in [one, other] { RealSystem.shared.prepare(descriptor) } }
        let handedOver = sockets.map {
            HandedOver(
                stream: DescriptorStream(input: $0.1, output: $0.1, RealSystem.shared), isStarted: true,
                limits: Connection.Limits(), input: nil, output: nil, hasPeerEnded: false, hasFinishedWriting: false)
        }
        let direction = RelayDirection(from: handedOver[0], to: handedOver[1], usesKernel: true, BufferPool())
        let (source, sink) = (Peer(sockets[0].0), Peer(sockets[1].0))
        // For each piece from the first one on, `true` if there is a pipe when it has left.
        var pipes: [Bool] = []
        for size in [10, 16 * 1024 - 1, 16 * 1024] + Array(repeating: 10, count: 40) + [64 * 1024, 10] {
            let piece = Self.pattern.prefix(size)
            source.send(piece)
            direction.sourceIsReady()
            #expect(direction.move() == nil)
            #expect(areSame(Array(sink.receiveBytes() ?? []), Array(piece)))
            pipes.append(direction.pipe != nil)
        }
        #expect(pipes == [false, false, false] + Array(repeating: true, count: 42))
        source.end()
        direction.sourceIsReady()
        #expect(direction.move() == nil && direction.hasEnded && sink.hasEnded())
    }

    @Test("a socket without a reader is an error of the relay and no signal, for copied and for spliced pieces")
    func brokenSink() throws {
        for size in [10, 32 * 1024] {
            let (first, second) = (makeSockets(), makeSockets())
            for descriptor in [first.0, first.1, second.0, second.1] { RealSystem.shared.prepare(descriptor) }
            let handedOver = [first.1, second.1].map {
                HandedOver(
                    stream: DescriptorStream(input: $0, output: $0, RealSystem.shared), isStarted: true,
                    limits: Connection.Limits(), input: nil, output: nil, hasPeerEnded: false, hasFinishedWriting: false
                )
            }
            let direction = RelayDirection(from: handedOver[0], to: handedOver[1], usesKernel: true, BufferPool())
            let (source, sink) = (Peer(first.0), Peer(second.0))
            source.send(Self.pattern.prefix(size))
            #expect(direction.move() == nil)
            #expect(sink.receiveBytes()?.count == size)
            sink.close()
            source.send(Self.pattern.prefix(size))
            direction.sourceIsReady()
            #expect(direction.move() == nil)
            #expect((direction.sinkFailure as? SystemError)?.errno == EPIPE && !direction.hasEnded)
            source.end()
            direction.sourceIsReady()
            #expect(direction.move() == nil && direction.hasEnded)
        }
    }

    @Test(
        "the answer of a side that closes before it has read everything is delivered whole", arguments: [true, false])
    func earlyAnswer(isTCP: Bool) {
        withSimulation { simulation in
            let loop = simulation.loop
            let (client, server) = isTCP ? (makeTCPSockets(), makeTCPSockets()) : (makeSockets(), makeSockets())
            let inner = [client.1, server.1].map { Connection(adopting: $0, on: loop) { _, _ in 0 } }
            let answer = 50_000
            let bytes = [UInt8](repeating: 7, count: answer)
            #expect(send(server.0, bytes, answer, 0) == answer)
            shutdown(server.0, Int32(SHUT_RD))
            close(server.0)
            var outcome: Connection.CloseReason?
            Relay(between: inner[0], and: inner[1]) { outcome = $1 }
            let peer = Peer(client.0)
            var received = 0
            var sent = 0
            simulation.settle {
                if sent < 1 << 20 { sent += max(0, send(peer.descriptor, bytes, answer, Int32(MSG_NOSIGNAL))) }
                guard let more = peer.receiveBytes() else { return true }
                received += more.count
                return false
            }
            #expect(received == answer)
            peer.end()
            simulation.settle { outcome != nil }
            guard case .failed(let error as SystemError) = outcome else {
                return #expect(Bool(false), "\(String(describing: outcome))")
            }
            #expect(error.errno == EPIPE)
        }
    }

    @Test("a side that is reset ends the relay with its error, and the other side is reset as well", arguments: 0..<2)
    func failure(side: Int) throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            var sides: [Connection] = []
            let listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop) { _, descriptor, _ in
                sides.append(Connection(adopting: descriptor, on: loop) { $1.count })
            }
            let peers = [Peer(connectedTo: listener.address), Peer(connectedTo: listener.address)]
            simulation.settle { sides.count == 2 }
            var outcome: Connection.CloseReason?
            let relay = Relay(between: sides[0], and: sides[1]) { outcome = $1 }
            peers[0].send("x")
            var text = ""
            simulation.settle {
                text += peers[1].receive() ?? ""
                return text == "x"
            }
            var linger = linger(l_onoff: 1, l_linger: 0)
            setsockopt(peers[side].descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
            peers[side].close()
            simulation.settle { outcome != nil }
            guard case .failed(let error as SystemError) = outcome else {
                return #expect(Bool(false), "\(String(describing: outcome))")
            }
            #expect(error.errno == ECONNRESET && !relay.isOpen)
            var reason: Int32 = 0
            simulation.settle {
                var byte: UInt8 = 0
                let hasEnded = recv(peers[1 - side].descriptor, &byte, 1, Int32(MSG_DONTWAIT)) == 0
                reason = hasEnded ? 0 : errno
                return reason != EAGAIN
            }
            #expect(reason == ECONNRESET)
            listener.close()
        }
    }

    @Test("a relay without traffic ends after its idle timeout; traffic in either direction counts")
    func idleTimeout() throws {
        try withSimulation { simulation in
            let relayed = try Relayed(.memory, on: simulation.loop, idleTimeout: .seconds(10))
            for second in 0..<30 {
                relayed.ends[second % 2].write("x")
                simulation.advance(by: .seconds(9))
            }
            #expect(relayed.relay.isOpen)
            simulation.advance(by: .seconds(1))
            #expect(relayed.outcome == .idleTimeout)
        }
    }

    @Test("the end of the loop ends a relay", arguments: [StreamKind.memory, .sockets])
    func loopEnds(kind: StreamKind) throws {
        let log = Log<String>()
        let thread = PlainThread {
            let loop = RunLoop.current
            let pairs = [kind.makePair(on: loop), kind.makePair(on: loop)]
            let sides = pairs.map {
                Connection(
                    $0.1, on: loop, inModes: .common, limits: Connection.Limits(),
                    origin: RunLoop.Origin(file: #fileID, line: #line)
                ) { $1.count }
            }
            Relay(between: sides[0], and: sides[1]) { log("\($1)") }
            loop.run(in: .default, until: .distantPast)
            log("thread ends")
        }
        thread.join()
        #expect(log.entries == ["thread ends", "loopEnded"])
    }
}
