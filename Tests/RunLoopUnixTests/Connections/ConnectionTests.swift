import Glibc
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopUnix

@Suite("Connections")
struct ConnectionTests {
    @Test("input is given to the handler, and the handler's output goes back")
    func echo() throws {
        try withSimulation { simulation in
            let (connection, peer) = try makePair(on: simulation.loop) { connection, bytes in
                connection.write(bytes)
                return bytes.count
            }
            peer.send("hello")
            simulation.advance(by: .zero)
            #expect(peer.receive() == "hello")
            connection.close()
            #expect(peer.hasEnded())
        }
    }

    @Test("input that the handler does not use is offered again, with the next input")
    func leftovers() throws {
        try withSimulation { simulation in
            var seen: [String] = []
            let (connection, peer) = try makePair(on: simulation.loop) { _, bytes in
                seen.append(bytes.text)
                return bytes.text.contains("\n") ? bytes.count : 0
            }
            for piece in ["one ", "two ", "three\n", "four"] {
                peer.send(piece)
                simulation.advance(by: .zero)
            }
            #expect(seen == ["one ", "one two ", "one two three\n", "four"])
            connection.close()
        }
    }

    @Test("all that is written in a handler goes out in one piece when it returns")
    func corked() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            var peer: Peer?
            let (connection, other) = try makePair(on: loop) { connection, bytes in
                connection.write("a")
                connection.write("b")
                #expect(peer!.receive() == "", "nothing has gone out yet")
                connection.write("c")
                return bytes.count
            }
            peer = other
            other.send("x")
            simulation.advance(by: .zero)
            #expect(other.receive() == "abc")
            connection.write("at once")
            #expect(other.receive() == "at once")
            connection.close()
        }
    }

    @Test("input that is written as it came goes out so, and stays as it is until the handler returns")
    func sendingOn() throws {
        try withSimulation { simulation in
            let (connection, peer) = try makePair(on: simulation.loop) { connection, bytes in
                let text = bytes.text
                connection.write(bytes)
                if text == "twice" {
                    connection.write("!")
                    connection.write(bytes)
                    #expect(connection.output !== connection.offered, "what grows is not what the handler has")
                }
                if text == "close" { connection.close() }
                let other = connection.pool.take()
                [UInt8](repeating: 0, count: text.utf8.count).withUnsafeBytes { other.append($0) }
                #expect(bytes.text == text)
                return text == "a part" ? 2 : bytes.count
            }
            for (piece, answer) in [("all", "all"), ("twice", "twice!twice"), ("a part", "a part"), ("s", "parts")] {
                peer.send(piece)
                simulation.advance(by: .zero)
                #expect(peer.receive() == answer)
            }
            #expect(connection.pendingOutput == 0 && connection.unusedInput == 0)
            peer.send("close")
            simulation.advance(by: .zero)
            #expect(peer.hasEnded())
            #expect(connection.pool.take() !== connection.pool.take(), "a buffer is in the pool once")
        }
    }

    @Test("a read that brings 64 KiB or more is followed by one of up to 256 KiB, in the next pass")
    func streaming() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let (size, most) = (BufferPool.size, BufferPool.largeSize)
            let (one, other) = MemoryStream.pair(capacity: 3 * most)
            var reads: [(pass: Int, count: Int)] = []
            let connection = Connection(
                one, on: loop, inModes: .common, limits: .init(), origin: RunLoop.Origin(file: #fileID, line: #line)
            ) { connection, bytes in
                reads.append((loop.statistics.passes, bytes.count))
                return bytes.count
            }
            try connection.start()
            for (input, counts) in [
                (size - 1, [size - 1]), (size + 1, [size, 1]), (size + 2 * most + 1, [size, most, most, 1]),
                (2 * size, [size, size]),
                (1, [1]), (1, [1]),
            ] {
                reads = []
                let bytes = [UInt8](repeating: 1, count: input)
                #expect(bytes.withUnsafeBytes { other.write($0) } == .done(input))
                simulation.advance(by: .zero)
                #expect(reads.map(\.count) == counts)
                #expect(Set(reads.map(\.pass)).count == reads.count, "one read in a pass")
            }
            connection.close()
        }
    }

    @Test("large buffers go back to the pool, one at most, and never among the small ones")
    func largeBuffers() {
        let pool = BufferPool()
        let (first, second, small) = (pool.takeLarge(), pool.takeLarge(), pool.take())
        #expect(
            (first.capacity, second.capacity, small.capacity) == (
                BufferPool.largeSize, BufferPool.largeSize, BufferPool.size
            ))
        [1, 2, 3].withUnsafeBytes { first.append($0) }
        pool.put(second)
        pool.put(first)
        pool.put(small)
        #expect(pool.take() === small)
        let kept = pool.takeLarge()
        #expect(kept === first && kept.isEmpty)
        #expect(pool.takeLarge() !== second)
    }

    @Test("a peer that does not read is not read either, until enough has gone out; nothing is lost")
    func backPressure() throws {
        try withSimulation { simulation in
            var limits = Connection.Limits()
            limits.highWatermark = 1 << 20
            limits.lowWatermark = 1 << 18
            var handled = 0
            var drained = 0
            let block = String(repeating: "x", count: 1 << 19)
            let (connection, peer) = try makePair(on: simulation.loop, limits: limits) { connection, bytes in
                handled += bytes.count
                for _ in 0..<bytes.count { connection.write(block) }
                return bytes.count
            }
            connection.drainHandler = { _ in drained += 1 }
            peer.send("123456")
            simulation.advance(by: .zero)
            #expect(connection.pendingOutput > limits.highWatermark)
            peer.send("7")
            simulation.advance(by: .seconds(1))
            #expect(handled == 6, "it is not read while so much waits")
            var received = 0
            while received < 7 << 19 {
                guard let text = peer.receive(), !text.isEmpty || simulation.advances() else { break }
                received += text.utf8.count
                simulation.advance(by: .zero)
            }
            #expect(received == 7 << 19)
            #expect(handled == 7)
            #expect(drained >= 1)
            connection.close()
        }
    }

    @Test("a peer that never reads is closed when more waits than may")
    func outputLimit() throws {
        try withSimulation { simulation in
            var limits = Connection.Limits()
            limits.maximumOutput = 1 << 20
            var reason: Connection.CloseReason?
            let (connection, peer) = try makePair(on: simulation.loop, limits: limits) { $1.count }
            connection.closeHandler = { reason = $1 }
            for _ in 0..<64 { connection.write(String(repeating: "x", count: 1 << 16)) }
            #expect(reason == .outputLimit)
            #expect(!connection.isOpen)
            withExtendedLifetime(peer) {}
        }
    }

    @Test("a request without an end is not kept beyond the limit")
    func inputLimit() throws {
        try withSimulation { simulation in
            var limits = Connection.Limits()
            limits.maximumInput = 100_000
            var reason: Connection.CloseReason?
            let (connection, peer) = try makePair(on: simulation.loop, limits: limits) { _, _ in 0 }
            connection.closeHandler = { reason = $1 }
            for _ in 0..<4 {
                peer.send(String(repeating: "x", count: 30_000))
                simulation.advance(by: .zero)
            }
            #expect(reason == .inputLimit)
        }
    }

    @Test("reading can be paused; unused input is offered when reading resumes")
    func pausing() throws {
        try withSimulation { simulation in
            var seen: [String] = []
            var uses = false
            let (connection, peer) = try makePair(on: simulation.loop) { connection, bytes in
                seen.append(bytes.text)
                if !uses { connection.pauseReading() }
                return uses ? bytes.count : 0
            }
            peer.send("a")
            simulation.advance(by: .zero)
            peer.send("b")
            simulation.advance(by: .seconds(1))
            #expect(seen == ["a"])
            uses = true
            connection.resumeReading()
            simulation.advance(by: .zero)
            #expect(seen.last!.hasSuffix("b") && seen.dropFirst().joined().contains("a"))
            connection.close()
        }
    }

    @Test("a pause before the start holds, and each pause needs its own end")
    func countedPauses() throws {
        try withSimulation { simulation in
            let (one, other) = makeSockets()
            var seen = ""
            let connection = Connection(adopting: one, on: simulation.loop) { _, bytes in
                seen += bytes.text
                return bytes.count
            }
            connection.endHandler = { _ in seen += "." }
            connection.pauseReading()
            try connection.start()
            let peer = Peer(other)
            peer.send("early")
            peer.end()
            simulation.advance(by: .seconds(1))
            connection.pauseReading()
            connection.resumeReading()
            simulation.advance(by: .seconds(1))
            #expect(seen == "", "neither bytes nor the end come before reading goes on")
            connection.resumeReading()
            connection.resumeReading()
            simulation.advance(by: .zero)
            #expect(seen == "early.")
            connection.close()
        }
    }

    @Test("input left unused because too much output waited is offered once the output has gone, without new input")
    func offeredAfterDrain() throws {
        try withSimulation { simulation in
            var limits = Connection.Limits()
            limits.highWatermark = 1 << 20
            let block = String(repeating: "x", count: 1 << 21)
            var answered = 0
            let (connection, peer) = try makePair(on: simulation.loop, limits: limits) { connection, bytes in
                guard connection.pendingOutput <= limits.lowWatermark else { return 0 }
                connection.write(block)
                answered += 1
                return 1
            }
            peer.send("1234")
            var received = 0
            simulation.settle {
                received += peer.receive()?.utf8.count ?? 0
                return received == 4 << 21
            }
            #expect(answered == 4 && received == 4 << 21)
            connection.close()
        }
    }

    // MARK: Streams

    @Test("the ends of two pipes are a connection, and a pipe without a reader is an error")
    func pipes() throws {
        try withSimulation { simulation in
            let (into, out) = (makePipe(), makePipe())
            var seen = ""
            var reason: Connection.CloseReason?
            let connection = Connection(adoptingInput: into.read, output: out.write, on: simulation.loop) {
                seen += $1.text
                return $1.count
            }
            connection.closeHandler = { reason = $1 }
            connection.write("out")
            try connection.start()
            #expect(write(into.write, "in", 2) == 2)
            simulation.advance(by: .zero)
            var room = [UInt8](repeating: 0, count: 10)
            let count = read(out.read, &room, room.count)
            #expect(seen == "in" && count == 3)
            close(out.read)
            connection.write("to nobody")
            #expect(reason == .failed(SystemError("write to the connection", errno: EPIPE)))
            close(into.write)
        }
    }

    @Test("a child's pipes are a connection: it is written to, reads to the end, and answers by lines")
    func child() throws {
        try withSimulation { simulation in
            let child = try ChildProcess.spawn(.named("sort"), standardInput: .pipe, standardOutput: .pipe)
            var lines: [String] = []
            var reason: Connection.CloseReason?
            let sort = Connection(
                reading: child.standardOutput, writing: child.standardInput, on: simulation.loop,
                receive: Framing.lines { lines.append($1.text) })
            sort.closeHandler = { reason = $1 }
            try sort.start()
            let numbers = (100..<20_000).map(String.init)
            sort.write(numbers.shuffled().joined(separator: "\n") + "\n")
            sort.finishWriting()
            simulation.settle { reason != nil }
            #expect(lines == numbers.sorted() && reason == .ended)
            #expect(child.standardInput?.fileDescriptor == -1 && child.standardOutput?.fileDescriptor == -1)
        }
    }

    @Test("a terminal is a connection, and its other side's end is the end")
    func terminal() throws {
        try withSimulation { simulation in
            var (master, slave): (Int32, Int32) = (-1, -1)
            let status = openpty(&master, &slave, nil, nil, nil)
            #expect(status == 0)
            var seen = ""
            var reason: Connection.CloseReason?
            let connection = Connection(adopting: master, on: simulation.loop) {
                seen += $1.text
                return $1.count
            }
            connection.closeHandler = { reason = $1 }
            try connection.start()
            #expect(write(slave, "hello\n", 6) == 6)
            simulation.settle { seen != "" }
            #expect(seen == "hello\r\n")
            close(slave)
            simulation.settle { reason != nil }
            #expect(reason == .ended)
        }
    }

    @Test("a descriptor that cannot be waited for is an error when the connection starts")
    func regularFile() throws {
        let file = open("/proc/self/exe", O_RDONLY)
        let connection = Connection(adopting: file, on: RunLoop.current) { $1.count }
        var reasons: [Connection.CloseReason] = []
        connection.closeHandler = { reasons.append($1) }
        #expect(throws: DescriptorError.notPollable(file)) { try connection.start() }
        // Another test may have the number again.
        #expect(reasons.count == 1 && linkTarget("/proc/self/fd/\(file)") != linkTarget("/proc/self/exe"))
    }

    @Test(
        "a handler that takes a byte at a time gets all, though the peer has ended meanwhile",
        arguments: [StreamKind.memory, .sockets], [false, true])
    func endBehindUnused(kind: StreamKind, pauses: Bool) throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            var (received, reason) = ("", Connection.CloseReason?.none)
            let (one, other) = kind.makePair(on: loop)
            let connection = Connection(
                one, on: loop, inModes: .common, limits: .init(), origin: RunLoop.Origin(file: #fileID, line: #line)
            ) { connection, bytes in
                received += bytes.extracting(0..<1).text
                connection.receiveAgain()
                if pauses && received.count > 5 {
                    connection.pauseReading()
                    loop.perform(afterDelay: .seconds(1)) { connection.resumeReading() }
                }
                return 1
            }
            connection.closeHandler = { reason = $1 }
            try connection.start()
            let text = Array("one byte after another".utf8)
            text.withUnsafeBytes { #expect(other.write($0) == .done($0.count)) }
            _ = other.endWriting()
            simulation.advance(by: .seconds(60))
            #expect(received.utf8.elementsEqual(text) && reason == .ended && connection.unusedInput == 0)
            other.close(.complete)
        }
    }

    @Test("a connection that finishes before its handler has taken all does not wait for an end that has come")
    func finishBehindUnused() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            var calls = 0
            let (one, other) = MemoryStream.pair()
            let connection = Connection(
                one, on: loop, inModes: .common, limits: .init(), origin: RunLoop.Origin(file: #fileID, line: #line)
            ) { connection, _ in
                calls += 1
                if calls < 10 { connection.receiveAgain() } else { connection.finish() }
                return 1
            }
            try connection.start()
            let text = Array("one byte after another".utf8)
            text.withUnsafeBytes { #expect(other.write($0) == .done($0.count)) }
            _ = other.endWriting()
            simulation.advance(by: .zero)
            #expect(calls == 10 && !connection.isOpen)
            other.close(.complete)
        }
    }

    @Test("a write after the end and a connection that was never started are each reported once")
    func ignored() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            var told: [String] = []
            loop.trace = { if case .ignored(let what) = $0 { told.append(what) } }
            let (connection, peer) = try makePair(on: loop) { $1.count }
            connection.finishWriting()
            connection.write("late")
            connection.close()
            connection.write("later")
            let (one, other) = makeSockets()
            _ = Connection(adopting: one, on: loop) { $1.count }
            #expect(told.count == 2)
            #expect(told[0].contains("was written to after it had been finished or closed"))
            #expect(told[1].contains("was released and had never been started"))
            #expect(isClosed(peer: other))
            close(other)
            withExtendedLifetime(peer) {}
        }
    }

    @Test("the end of its loop closes a connection, which says so")
    func loopEnds() throws {
        let log = Log<String>()
        let thread = PlainThread {
            let (one, other) = makeSockets()
            let connection = Connection(adopting: one, on: RunLoop.current) { $1.count }
            connection.closeHandler = {
                log("\($1) \(isClosed(peer: other))")
                close(other)
            }
            try! connection.start()
        }
        thread.join()
        #expect(log.entries == ["loopEnded true"])
    }

    // MARK: Ends

    @Test("when the peer has ended, waiting output is still sent, and the connection closes")
    func peerEnds() throws {
        try withSimulation { simulation in
            var reason: Connection.CloseReason?
            let (connection, peer) = try makePair(on: simulation.loop) { connection, bytes in
                connection.write("bye")
                return bytes.count
            }
            connection.closeHandler = { reason = $1 }
            peer.send("x")
            peer.end()
            simulation.advance(by: .zero)
            #expect(peer.receive() == "bye")
            #expect(peer.hasEnded())
            #expect(reason == .ended)
        }
    }

    @Test("with an end handler the other direction continues until it is finished")
    func halfClose() throws {
        try withSimulation { simulation in
            var reason: Connection.CloseReason?
            let (connection, peer) = try makePair(on: simulation.loop) { $1.count }
            connection.endHandler = { connection in
                simulation.loop.perform(afterDelay: .seconds(1)) {
                    connection.write("late")
                    connection.finish()
                }
            }
            connection.closeHandler = { reason = $1 }
            peer.end()
            simulation.advance(by: .milliseconds(500))
            #expect(connection.isOpen)
            #expect(peer.receive() == "")
            simulation.advance(by: .seconds(1))
            #expect(peer.receive() == "late")
            #expect(peer.hasEnded())
            #expect(reason == .closed)
        }
    }

    @Test("a connection can end its output and still be read")
    func ownEnd() throws {
        try withSimulation { simulation in
            var seen = ""
            let (connection, peer) = try makePair(on: simulation.loop) { _, bytes in
                seen += bytes.text
                return bytes.count
            }
            connection.write("all")
            connection.finishWriting()
            connection.write("nothing after the end")
            #expect(peer.receive() == "all")
            #expect(peer.hasEnded())
            peer.send("answer")
            simulation.advance(by: .zero)
            #expect(seen == "answer")
            #expect(connection.isOpen)
            peer.end()
            simulation.advance(by: .zero)
            #expect(!connection.isOpen)
        }
    }

    @Test("a connection that is closed before it is started stays closed")
    func closedBeforeStart() throws {
        try withSimulation { simulation in
            let (one, other) = makeSockets()
            var limits = Connection.Limits()
            limits.maximumOutput = 3
            let connection = Connection(adopting: one, on: simulation.loop, limits: limits) { $1.count }
            var reasons: [Connection.CloseReason] = []
            connection.closeHandler = { reasons.append($1) }
            connection.write("more than that")
            try connection.start()
            #expect(reasons == [.outputLimit])
            #expect(simulation.loop.dump().items.isEmpty)
            close(other)
        }
    }

    @Test("output written before finish() arrives, though the peer has sent input that was never read")
    func finishingUnread() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let answer = [UInt8](repeating: 7, count: 4 << 20)
            var connection: Connection?
            var reason: Connection.CloseReason?
            let listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop) { _, descriptor, _ in
                connection = Connection(adopting: descriptor, on: loop) { connection, bytes in
                    connection.write(answer)
                    connection.finish()
                    return bytes.count
                }
                connection!.closeHandler = { reason = $1 }
                try! connection!.start()
            }
            let peer = Peer(connectedTo: listener.address)
            peer.send("a request")
            simulation.settle { connection.map { $0.pendingOutput > 0 } ?? false }
            peer.send("and more than anybody wants to know")
            var received = 0
            simulation.settle {
                received += peer.receive()?.utf8.count ?? 0
                return received == answer.count
            }
            #expect(received == answer.count)
            #expect(peer.hasEnded(), "the end, and not a reset")
            peer.close()
            simulation.settle { reason != nil }
            #expect(reason == .closed)
            listener.close()
        }
    }

    @Test("finishing sends waiting output before it closes, but only within its time limit")
    func finishing() throws {
        try withSimulation { simulation in
            var reasons: [Connection.CloseReason] = []
            let block = String(repeating: "x", count: 1 << 20)
            let (reading, reader) = try makePair(on: simulation.loop) { $1.count }
            let (stuck, silent) = try makePair(on: simulation.loop) { $1.count }
            for connection in [reading, stuck] {
                connection.closeHandler = { reasons.append($1) }
                connection.write(block)
                connection.finish(within: .seconds(2))
            }
            var received = 0
            while let text = reader.receive() {
                received += text.utf8.count
                simulation.advance(by: .zero)
            }
            #expect(received == 1 << 20)
            #expect(reasons == [.closed])
            simulation.advance(by: .seconds(3))
            #expect(reasons == [.closed, .totalTimeout])
            withExtendedLifetime(silent) {}
        }
    }

    @Test("a silent connection closes after its idle timeout, counted from the last byte either way")
    func idleTimeout() throws {
        try withSimulation { simulation in
            var limits = Connection.Limits()
            limits.idleTimeout = .seconds(10)
            var end: RunLoop.Instant?
            let (connection, peer) = try makePair(on: simulation.loop, limits: limits) { $1.count }
            connection.closeHandler = {
                #expect($1 == .idleTimeout)
                end = simulation.now
            }
            let start = simulation.loop.statistics.fires
            for second in 1...100 {
                simulation.advance(by: .seconds(1))
                if second % 2 == 0 { peer.send("x") } else { connection.write("y") }
            }
            simulation.advance(by: .seconds(60))
            #expect(end == ms(110_000))
            #expect(simulation.loop.statistics.fires - start <= 13, "the timer is not moved at every byte")
        }
    }

    @Test("a connection lasts no longer than its total timeout")
    func totalTimeout() throws {
        try withSimulation { simulation in
            var limits = Connection.Limits()
            limits.totalTimeout = .seconds(5)
            var reason: Connection.CloseReason?
            let (connection, peer) = try makePair(on: simulation.loop, limits: limits) { $1.count }
            connection.closeHandler = { reason = $1 }
            for _ in 0..<6 {
                if reason == nil { peer.send("x") }
                simulation.advance(by: .seconds(1))
            }
            #expect(reason == .totalTimeout)
        }
    }

    @Test("a reset by the peer is an error with its reason, and the handlers are released")
    func reset() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            var reason: Connection.CloseReason?
            let listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop) { _, descriptor, _ in
                let connection = Connection(adopting: descriptor, on: loop) { $1.count }
                connection.closeHandler = { reason = $1 }
                try? connection.start()
            }
            let peer = Peer(connectedTo: listener.address)
            simulation.settle { listener.acceptedCount == 1 }
            var linger = linger(l_onoff: 1, l_linger: 0)
            setsockopt(peer.descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
            peer.close()
            simulation.settle { reason != nil }
            #expect(reason == .failed(SystemError("read from the connection", errno: ECONNRESET)))
            listener.close()
        }
    }

    @Test("the loop keeps a connection until it is closed, and then releases it")
    func ownership() throws {
        try withSimulation { simulation in
            weak var kept: Connection?
            var peer: Peer?
            do {
                let pair = try makePair(on: simulation.loop) { $1.count }
                (kept, peer) = (pair.connection, pair.peer)
            }
            simulation.advance(by: .seconds(1))
            #expect(kept != nil)
            peer!.end()
            simulation.advance(by: .zero)
            #expect(kept == nil)
        }
    }

    @Test("a connection that rests in a mode is not read until the mode runs")
    func modes() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let (one, other) = makeSockets()
            var seen = ""
            let connection = Connection(adopting: one, on: loop, inModes: .tracking) { _, bytes in
                seen += bytes.text
                return bytes.count
            }
            try connection.start()
            let peer = Peer(other)
            peer.send("x")
            simulation.advance(by: .seconds(1))
            #expect(seen == "")
            loop.run(in: .tracking, until: loop.now)
            #expect(seen == "x")
            connection.close()
        }
    }
}

extension Simulation {
    /// Lets a millisecond pass; always returns `true`.
    fileprivate func advances() -> Bool {
        advance(by: .milliseconds(1))
        return true
    }
}
