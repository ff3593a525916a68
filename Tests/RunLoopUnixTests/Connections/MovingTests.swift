import Glibc
@_spi(Ports) import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@testable import RunLoopUnix

/// An echo that moves from loop to loop.
private struct Traveller: Sendable {
    let loops: [RunLoop.Remote]
    let seed: UInt64
    let moves = Counter()
    let ends = Log<String>()

    func begin(_ descriptor: Int32) {
        loops[0].perform { begin(Connection(adopting: descriptor, on: $0, receive: makeHandler())) }
    }

    private func begin(_ connection: Connection) {
        connection.closeHandler = { if $1 != .moved { ends("\($1)") } }
        // Even before the connection's start.
        if moves.value % 7 == 3 { return move(connection, to: moves.value) }
        do { try connection.start() } catch { Issue.record("\(error)") }
    }

    /// Makes a handler that sends back some of the input, leaves the rest, and moves the connection now and then.
    private func makeHandler() -> Connection.ReceiveHandler {
        var generator = SeededGenerator(seed: seed &+ UInt64(moves.value))
        return { connection, bytes in
            let used = Int.random(in: 0...bytes.count, using: &generator)
            connection.write(bytes.extracting(..<used))
            switch Int.random(in: 0..<8, using: &generator) {
            case 0...2:
                move(connection, to: Int.random(in: 0..<loops.count, using: &generator))
                // Output written after that moves along.
                guard used < bytes.count else { return used }
                connection.write(bytes.extracting(used..<used + 1))
                return used + 1
            case 3: connection.loop.perform { move(connection, to: 1) }
            default: break
            }
            connection.receiveAgain()
            return used
        }
    }

    private func move(_ connection: Connection, to number: Int) {
        connection.move(to: loops[number % loops.count]) { loop, moved in
            moves.add()
            begin(Connection(adopting: moved, on: loop, receive: makeHandler()))
        }
    }
}

@Suite("Connections that move", .timeLimit(.minutes(5)))
struct MovingTests {
    /// Writes all bytes in pieces and reads meanwhile, until as many have come back and the stream has ended.
    private func exchange(_ bytes: [UInt8], over peer: Peer, seed: UInt64) -> [UInt8] {
        var generator = SeededGenerator(seed: seed)
        var (sent, received) = (0, [UInt8]())
        while true {
            var waiting = pollfd(
                fd: peer.descriptor, events: Int16(POLLIN | (sent < bytes.count ? POLLOUT : 0)), revents: 0)
            guard poll(&waiting, 1, 20_000) > 0 else { return received }
            if waiting.revents & Int16(POLLOUT) != 0 {
                let most = min(bytes.count - sent, Int.random(in: 1...40_000, using: &generator))
                sent += max(
                    0, bytes[sent..<sent + most].withUnsafeBytes { send(peer.descriptor, $0.baseAddress, most, 0) })
                if sent == bytes.count { peer.end() }
            }
            guard waiting.revents & Int16(POLLIN | POLLHUP) != 0 else { continue }
            guard let some = peer.receiveBytes(Int.random(in: 1...40_000, using: &generator)) else { return received }
            received += some
        }
    }

    @Test("no byte is lost, doubled or out of order while a peer writes and reads, however often it moves")
    func travels() throws {
        let group = try LoopGroup(count: 3)
        defer { end(group) }
        let seed = UInt64.random(in: 0 ... .max)
        for round in 0..<UInt64(amount(of: "TRAVELS", usually: 4)) {
            let traveller = Traveller(loops: group.loops, seed: seed &+ round << 32)
            let bytes = randomBytes(3_000_000, seed: seed &+ round)
            let (one, other) = makeSockets()
            traveller.begin(one)
            let received = exchange(bytes, over: Peer(other), seed: seed &+ round)
            #expect(areSame(received, bytes), "seed \(seed), round \(round): \(received.count) bytes")
            #expect(traveller.moves.value > 20, "seed \(seed), round \(round)")
            #expect(eventually { traveller.ends.entries == ["ended"] }, "seed \(seed): \(traveller.ends.entries)")
        }
    }

    @Test("output that waits for a slow reader moves along")
    func pendingOutput() throws {
        let group = try LoopGroup(count: 2)
        defer { end(group) }
        let bytes = randomBytes(4_000_000, seed: 2)
        let (one, other) = makeSockets()
        let (peer, moves) = (Peer(other), Counter())
        @Sendable func goOn(_ connection: Connection) {
            guard moves.add() <= 20 else { return connection.finish() }
            connection.move(to: group.loops[moves.value % 2]) { loop, moved in
                let next = Connection(adopting: moved, on: loop) { $1.count }
                #expect(next.pendingOutput > 1_000_000)
                do { try next.start() } catch { Issue.record("\(error)") }
                goOn(next)
            }
        }
        group.loops[0].perform { loop in
            let connection = Connection(adopting: one, on: loop) { $1.count }
            do { try connection.start() } catch { Issue.record("\(error)") }
            connection.write(bytes)
            goOn(connection)
        }
        #expect(eventually { moves.value == 21 })
        var received: [UInt8] = []
        #expect(
            eventually {
                while let some = peer.receiveBytes(100_000) {
                    if some.isEmpty { return false }
                    received += some
                }
                return true
            })
        #expect(areSame(received, bytes))
    }

    @Test("unused input is offered first, then the end already seen, and a direction ended by this side stays ended")
    func ends() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let log = Log<String>()
            let (connection, peer) = try makePair(on: loop) { _, _ in 0 }
            connection.endHandler = { _ in log("end") }
            connection.closeHandler = { log("\($1), \($0.fileDescriptor), \($0.unusedInput)") }
            peer.send("question")
            peer.end()
            simulation.settle { log.entries == ["end"] }
            connection.write("some")
            connection.move(to: loop.remote) { loop, moved in
                log("arrival")
                let next = Connection(adopting: moved, on: loop) { connection, bytes in
                    log(bytes.text)
                    return bytes.count
                }
                #expect(next.unusedInput == 8)
                next.endHandler = {
                    log("end again")
                    $0.write(" more")
                    $0.finishWriting()
                }
                next.closeHandler = { log("\($1)") }
                do { try next.start() } catch { Issue.record("\(error)") }
            }
            #expect(connection.isOpen, "it leaves in the next pass")
            simulation.settle { log.entries.count == 6 }
            #expect(log.entries == ["end", "moved, -1, 0", "arrival", "question", "end again", "ended"])
            #expect(peer.receive() == "some more" && peer.hasEnded())

            let (half, other) = try makePair(on: loop) { $1.count }
            half.finishWriting()
            half.move(to: loop.remote) { loop, moved in
                let next = Connection(adopting: moved, on: loop) { $1.count }
                next.write("ignored")
                next.closeHandler = { log("half \($1)") }
                do { try next.start() } catch { Issue.record("\(error)") }
            }
            simulation.advance(by: .zero)
            #expect(other.hasEnded())
            other.end()
            simulation.settle { log.entries.last == "half ended" }
        }
    }

    @Test("the ends of two pipes move together")
    func pipes() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let (input, output) = (makePipe(), makePipe())
            defer { for descriptor in [input.write, output.read] { close(descriptor) } }
            let log = Log<String>()
            let connection = Connection(adoptingInput: input.read, output: output.write, on: loop) { _, _ in 0 }
            try connection.start()
            #expect("ping".withCString { write(input.write, $0, 4) } == 4)
            simulation.settle { connection.unusedInput == 4 }
            connection.move(to: loop.remote) { loop, moved in
                let next = Connection(adopting: moved, on: loop) { connection, bytes in
                    log(bytes.text)
                    connection.write("pong")
                    connection.finish()
                    return bytes.count
                }
                next.closeHandler = { log("\($1)") }
                do { try next.start() } catch { Issue.record("\(error)") }
            }
            simulation.settle { log.entries.count == 2 }
            #expect(log.entries == ["ping", "closed"])
            var answer = [UInt8](repeating: 0, count: 9)
            #expect(read(output.read, &answer, 9) == 4 && read(output.read, &answer, 9) == 0)
        }
    }

    @Test(
        "a connection that is closed, was finished or moves already does not move; one that is closed meanwhile stays")
    func refusals() throws {
        try withSimulation { simulation in
            let log = Log<String>()
            let endings: [(String, (Connection) -> Void, (Connection) -> Void)] = [
                ("closed", { $0.close() }, { _ in }), ("finished", { $0.finish() }, { _ in }),
                ("closed later", { _ in }, { $0.close() }), ("finished later", { _ in }, { $0.finish() }),
            ]
            for (name, before, after) in endings {
                let (connection, peer) = try makePair(on: simulation.loop) { $1.count }
                connection.closeHandler = { log("\(name): \($1)") }
                before(connection)
                for attempt in 1...2 {
                    connection.move(to: simulation.loop.remote) { _, _ in log("\(name): arrival \(attempt)") }
                }
                after(connection)
                simulation.advance(by: .zero)
                #expect(peer.hasEnded())
            }
            #expect(
                log.entries == [
                    "closed: closed", "finished: closed", "closed later: closed", "finished later: moved",
                    "finished later: arrival 1",
                ])
        }
    }

    @Test("a move in a handler that runs the loop waits until the handler has returned")
    func nestedRun() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let log = Log<String>()
            let (connection, peer) = try makePair(on: loop) { connection, bytes in
                connection.move(to: loop.remote) { loop, moved in
                    let next = Connection(adopting: moved, on: loop) {
                        log("then \($1.text)")
                        return $1.count
                    }
                    do { try next.start() } catch { Issue.record("\(error)") }
                }
                loop.run(until: loop.now + .milliseconds(10))
                log("\(bytes.text) \(connection.isOpen)")
                return 3
            }
            peer.send("one two")
            simulation.advance(by: .milliseconds(20))
            #expect(log.entries == ["one two true", "then  two"])
            #expect(!connection.isOpen)
        }
    }

    @Test("if the receiving loop has ended, or ends before the arrival, the connection is closed")
    func endedTarget() throws {
        let group = try LoopGroup(count: 3)
        defer { end(group) }
        try group.loops[2].performAndWait { $0.endAllRuns() }
        #expect(eventually { !group.loops[2].perform { _ in } })
        let log = Log<String>()
        for number in [2, 1] {
            let (one, other) = makeSockets()
            let peer = Peer(other)
            try group.loops[0].performAndWait { loop in
                let connection = Connection(adopting: one, on: loop) { $1.count }
                connection.closeHandler = { log("\($1)") }
                try connection.start()
                // In a mode in which nothing ever arrives.
                connection.move(to: group.loops[number], inModes: "never") { _, _ in log("arrival") }
            }
            #expect(eventually { !log.entries.isEmpty })
            if number == 1 {
                #expect(peer.receive() == "", "it is under way")
                try group.loops[1].performAndWait { $0.endAllRuns() }
            }
            #expect(peer.hasEnded())
            #expect(log.entries == ["moved"])
            log.clear()
        }
    }

    @Test(
        "a connection not adopted, or adopted and not started, is closed; the end of the first loop closes it")
    func notAdopted() throws {
        let log = Log<String>()
        let peers = try withSimulation { simulation in
            let loop = simulation.loop
            let (one, first) = try makePair(on: loop) { $1.count }
            one.move(to: loop.remote) { _, _ in log("arrival") }
            let (two, second) = try makePair(on: loop) { $1.count }
            two.move(to: loop.remote) { _ = Connection(adopting: $1, on: $0) { $1.count } }
            simulation.advance(by: .zero)
            #expect(first.hasEnded() && second.hasEnded())
            let (three, third) = try makePair(on: loop) { $1.count }
            three.closeHandler = { log("\($1)") }
            three.move(to: loop.remote) { _, _ in log("arrival") }
            return third
        }
        #expect(peers.hasEnded())
        #expect(log.entries == ["arrival", "loopEnded"])
    }

    @Test("tasks hand a connection on to a task of another loop, with its unread input")
    func tasks() async throws {
        let group = try onThread { Result { try LoopGroup(count: 2) } }.get()
        let (one, other) = makeSockets()
        let peer = Peer(other)
        peer.send("hello\nrest")
        let log = Log<String>()
        group.loops[0].perform { loop in
            let connection = Connection(adopting: one, on: loop)
            loop.task {
                try await connection.withStream { stream in
                    let hello = try #require(try await stream.read(atMost: 6))
                    log(String(decoding: hello, as: UTF8.self))
                    loop.task {
                        do { while try await stream.receive({ _ in 0 }) {} } catch { log("\(error)") }
                    }
                    try await loop.clock.sleep(for: .milliseconds(1))
                    stream.move(to: group.loops[1]) { loop, moved in
                        let connection = Connection(adopting: moved, on: loop)
                        loop.task {
                            try await connection.withStream { stream in
                                var text = ""
                                while let some = try await stream.read() {
                                    text += String(decoding: some, as: UTF8.self)
                                    if text == "rest" { try await stream.write("thanks") }
                                }
                                log(text)
                            }
                        } then: {
                            log("\($0)")
                        }
                    }
                }
                log("moved")
            }
        }
        #expect(eventually { peer.receive() == "thanks" })
        peer.end()
        #expect(eventually { log.entries.count == 5 })
        #expect(Set(log.entries) == ["hello\n", "the connection was closed: moved", "moved", "rest", "success()"])
        group.stop()
        await group.ended()
    }

    @Test("connections of a simulated group move at the same times in every run")
    func simulated() throws {
        func run() throws -> [String] {
            let log = Log<String>()
            try withSimulation { simulation in
                let group = try LoopGroup(count: 3, name: "worker")
                let (one, other) = makeSockets()
                let peer = Peer(other)
                @Sendable func serve(_ connection: Connection, by number: Int) {
                    connection.closeHandler = { log("\(number) \($0.loop.now) \($1)") }
                    do { try connection.start() } catch { Issue.record("\(error)") }
                    connection.loop.asyncAfter(.milliseconds(3)) {
                        connection.move(to: group.loops[(number + 1) % 3]) { loop, moved in
                            log("\(number + 1) \(loop.now) on \(loop.name!)")
                            serve(
                                Connection(adopting: moved, on: loop) { connection, bytes in
                                    connection.write(bytes)
                                    return bytes.count - 1
                                }, by: number + 1)
                        }
                    }
                }
                group.loops[0].perform { serve(Connection(adopting: one, on: $0) { _, _ in 0 }, by: 0) }
                for step in 0..<10 {
                    if step < 8 { peer.send("\(step)") }
                    if step == 8 { peer.end() }
                    simulation.advance(by: .milliseconds(2))
                    // Not the end: a child that another test is spawning may hold the socket for a moment.
                    log(peer.receive() ?? "")
                }
                group.stop()
                group.join()
            }
            return log.entries
        }
        let first = try run()
        #expect(first.count > 15, "\(first)")
        #expect(try run() == first)
    }

    private func end(_ group: LoopGroup) {
        group.stop()
        group.join()
    }
}
