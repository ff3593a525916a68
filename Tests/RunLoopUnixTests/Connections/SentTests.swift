import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopUnix

@Suite("Notice of sent bytes")
struct SentTests {
    @Test("the notice comes when the system has the bytes, in the order of the calls and after the call")
    func order() throws {
        try withSimulation { simulation in
            let log = Log<String>()
            let (connection, peer) = try makePair(on: simulation.loop) { $1.count }
            connection.write("small")
            connection.whenSent { _, isSent in log("small \(isSent)") }
            #expect(log.entries == [])
            simulation.advance(by: .zero)
            #expect(log.entries == ["small true"])
            let large = [UInt8](repeating: 1, count: 8_000_000)
            connection.write(large)
            connection.whenSent { connection, isSent in log("large \(isSent), \(connection.pendingOutput) left") }
            connection.write("last")
            connection.whenSent { _, isSent in log("last \(isSent)") }
            simulation.advance(by: .zero)
            #expect(log.entries == ["small true"])
            var received = 0
            while log.entries.count < 3 {
                guard let bytes = peer.receiveBytes() else { break }
                received += bytes.count
                simulation.advance(by: .zero)
            }
            #expect(log.entries.map { String($0.prefix(10)) } == ["small true", "large true", "last true"])
            #expect(received > 4_000_000)
        }
    }

    @Test("a block may write, and its own notice comes after the bytes that it wrote")
    func writing() throws {
        try withSimulation { simulation in
            let (connection, peer) = try makePair(on: simulation.loop) { $1.count }
            var left = 200
            func go(_ connection: Connection, _ isSent: Bool) {
                guard isSent, left > 0 else { return }
                left -= 1
                connection.write("x")
                connection.whenSent(go)
            }
            connection.whenSent(go)
            simulation.advance(by: .zero)
            #expect(left == 0)
            #expect(peer.receive()?.count == 200)
        }
    }

    @Test("a connection that closes or moves before answers no, after its close handler")
    func closing() throws {
        try withSimulation { simulation in
            for moves in [false, true] {
                let log = Log<String>()
                let (connection, peer) = try makePair(on: simulation.loop) { $1.count }
                connection.closeHandler = { _, reason in log("\(reason)") }
                connection.whenSent { _, isSent in log("nothing \(isSent)") }
                connection.write([UInt8](repeating: 1, count: 8_000_000))
                connection.whenSent { _, isSent in log("all \(isSent)") }
                if moves { connection.move(to: simulation.loop.remote) { _, _ in } } else { connection.close() }
                simulation.advance(by: .zero)
                #expect(
                    Set(log.entries) == [moves ? "moved" : "closed", "nothing true", "all false"], "\(log.entries)")
                #expect(log.entries.last == "all false")
                connection.whenSent { _, isSent in log("late \(isSent)") }
                simulation.advance(by: .zero)
                #expect(log.entries.last == "late false")
                withExtendedLifetime(peer) {}
            }
        }
    }

    @Test("a task waits for its bytes, and gets an error if they were lost")
    func tasks() throws {
        try withSimulation { simulation in
            let log = Log<String>()
            let (one, other) = makeSockets()
            let peer = Peer(other)
            let connection = Connection(adopting: one, on: simulation.loop)
            try connection.start()
            simulation.loop.task {
                do {
                    try await connection.write("hello")
                    try await connection.sent()
                    log("sent")
                    try await connection.write([UInt8](repeating: 1, count: 200_000))
                    let most = [UInt8](repeating: 1, count: 8_000_000)
                    connection.write(most.span)
                    try await connection.sent()
                    log("sent all")
                } catch {
                    log("\(error)")
                }
            }
            simulation.advance(by: .zero)
            #expect(log.entries == ["sent"] && peer.receive(5) == "hello")
            connection.close()
            simulation.advance(by: .zero)
            #expect(log.entries == ["sent", "the connection was closed: closed"])
        }
    }

    @Test("pieces arrive one behind the other, whatever their sizes are", arguments: 1...8)
    func pieces(seed: UInt64) throws {
        try withSimulation { simulation in
            var random = SeededGenerator(seed: seed)
            for kind in StreamKind.allCases {
                let (one, other) = kind.makePair(on: simulation.loop)
                let origin = RunLoop.Origin(file: #fileID, line: #line)
                let connection = Connection(
                    one, on: simulation.loop, inModes: .common, limits: .init(), origin: origin
                ) { $1.count }
                var received: [UInt8] = []
                let peer = Connection(
                    other, on: simulation.loop, inModes: .common, limits: .init(), origin: origin
                ) { _, bytes in
                    bytes.withUnsafeBytes { received += $0 }
                    return bytes.count
                }
                try connection.start()
                try peer.start()
                var sent: [UInt8] = []
                for _ in 0..<5 {
                    let most = [3, 300].randomElement(using: &random)!
                    let pieces = (0..<Int.random(in: 0...40, using: &random)).map { _ in
                        (0..<Int.random(in: 0...most, using: &random)).map { _ in
                            UInt8.random(in: 0...255, using: &random)
                        }
                    }
                    connection.write(gathering: pieces)
                    sent += pieces.joined()
                    if Bool.random(using: &random) { simulation.advance(by: .zero) }
                }
                for _ in 0..<1_000_000 where received.count < sent.count { simulation.advance(by: .zero) }
                #expect(received == sent, "seed \(seed), \(kind)")
                connection.close()
                peer.close()
            }
        }
    }
}

@Suite("Limits that change")
struct ChangingLimitsTests {
    @Test("a timeout that changes counts anew, the total one from the start")
    func timeouts() throws {
        try withSimulation { simulation in
            var closed: (reason: Connection.CloseReason, date: RunLoop.Instant)?
            func pair(_ change: (inout Connection.Limits) -> Void) throws -> (connection: Connection, peer: Peer) {
                var limits = Connection.Limits()
                change(&limits)
                let pair = try makePair(on: simulation.loop, limits: limits) { $1.count }
                pair.connection.closeHandler = { closed = ($1, simulation.now) }
                return pair
            }
            var (connection, peer) = try pair { $0.idleTimeout = .seconds(10) }
            simulation.advance(by: .seconds(9))
            connection.limits.idleTimeout = .seconds(60)
            simulation.advance(by: .seconds(59))
            #expect(closed == nil)
            simulation.advance(by: .seconds(2))
            #expect(closed?.reason == .idleTimeout && closed?.date == ms(69_000))

            closed = nil
            var start = simulation.now
            (connection, peer) = try pair { $0.totalTimeout = .seconds(10) }
            simulation.advance(by: .seconds(5))
            connection.limits.totalTimeout = .seconds(20)
            connection.limits.idleTimeout = nil
            simulation.advance(by: .seconds(60))
            #expect(closed?.reason == .totalTimeout && closed?.date == start + .seconds(20))

            closed = nil
            (connection, peer) = try pair { $0.totalTimeout = .seconds(10) }
            connection.limits.totalTimeout = nil
            simulation.advance(by: .seconds(60))
            #expect(closed == nil)
            start = simulation.now
            connection.limits.inputTimeout = .seconds(7)
            connection.limits.idleTimeout = .seconds(8)
            simulation.advance(by: .seconds(60))
            #expect(closed?.reason == .idleTimeout && closed?.date == start + .seconds(7))
            withExtendedLifetime(peer) {}
        }
    }

    @Test("a total timeout that grows does not delay a connection that is to finish in time")
    func finishing() throws {
        try withSimulation { simulation in
            var closed: RunLoop.Instant?
            let (connection, peer) = try makePair(on: simulation.loop) { $1.count }
            connection.closeHandler = { _, _ in closed = simulation.now }
            connection.write([UInt8](repeating: 1, count: 8_000_000))
            connection.finish(within: .seconds(5))
            connection.limits.totalTimeout = .seconds(100)
            simulation.advance(by: .seconds(10))
            #expect(closed == ms(5_000))
            withExtendedLifetime(peer) {}
        }
    }

    @Test("water marks and the limit on output that change count at once")
    func output() throws {
        try withSimulation { simulation in
            let log = Log<String>()
            let (connection, peer) = try makePair(on: simulation.loop) { $1.count }
            connection.fullHandler = { _ in log("full") }
            connection.drainHandler = { _ in log("drained") }
            connection.closeHandler = { log("\($1)") }
            connection.limits.highWatermark = 16_000_000
            connection.write([UInt8](repeating: 1, count: 8_000_000))
            #expect(log.entries == [])
            connection.limits.highWatermark = 1000
            #expect(log.entries == ["full"])
            (connection.limits.lowWatermark, connection.limits.highWatermark) = (9_000_000, 10_000_000)
            #expect(log.entries == ["full", "drained"])
            connection.limits.maximumOutput = 1000
            #expect(log.entries == ["full", "drained", "outputLimit"])
            withExtendedLifetime(peer) {}
        }
    }

    @Test("a low mark above the high one counts as the high one")
    func marks() throws {
        try withSimulation { simulation in
            let log = Log<String>()
            var limits = Connection.Limits()
            (limits.lowWatermark, limits.highWatermark) = (16_000_000, 1000)
            let (connection, peer) = try makePair(on: simulation.loop, limits: limits) { $1.count }
            connection.fullHandler = { _ in log("full") }
            connection.drainHandler = { log("drained at \($0.pendingOutput <= 1000)") }
            connection.write([UInt8](repeating: 1, count: 8_000_000))
            #expect(log.entries == ["full"])
            for _ in 0..<1_000_000 where connection.pendingOutput > 0 {
                _ = peer.receiveBytes()
                simulation.advance(by: .zero)
            }
            #expect(log.entries == ["full", "drained at true"])
        }
    }

    @Test("a new budget is charged for the input that the connection holds, and the former budget is released")
    func budget() throws {
        try withSimulation { simulation in
            let (small, large) = (Connection.InputBudget(bytes: 10), Connection.InputBudget(bytes: 100))
            var limits = Connection.Limits()
            limits.inputBudget = large
            var closed: Connection.CloseReason?
            let (connection, peer) = try makePair(on: simulation.loop, limits: limits) { _, _ in 0 }
            connection.closeHandler = { closed = $1 }
            peer.send("twenty bytes of text")
            simulation.advance(by: .zero)
            #expect(large.used == 20)
            connection.limits.inputBudget = nil
            #expect(large.used == 0)
            connection.limits.inputBudget = large
            #expect(large.used == 20 && closed == nil)
            connection.limits.inputBudget = small
            #expect(large.used == 0 && small.used == 0 && closed == .inputLimit)
        }
    }
}
