import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@testable import RunLoopUnix

@Suite("Bounds of input")
struct InputBoundTests {
    private func limits(_ change: (inout Connection.Limits) -> Void) -> Connection.Limits {
        var limits = Connection.Limits()
        change(&limits)
        return limits
    }

    // MARK: Time

    @Test("a peer that sends nothing is closed, although it is sent something all the time")
    func silentPeer() throws {
        try withSimulation { simulation in
            var closed: (reason: Connection.CloseReason, date: RunLoop.Instant)?
            let limits = limits { $0.inputTimeout = .seconds(10) }
            let (connection, peer) = try makePair(on: simulation.loop, limits: limits) { $1.count }
            connection.closeHandler = { closed = ($1, simulation.now) }
            simulation.loop.add(
                Timer(timeInterval: .seconds(1), repeats: true) { _ in connection.write("news") }, forMode: .default)
            simulation.advance(by: .seconds(4))
            peer.send("hello")
            simulation.advance(by: .milliseconds(9_999))
            #expect(closed == nil)
            simulation.advance(by: .seconds(2))
            #expect(closed?.reason == .idleTimeout && closed?.date == ms(14_000))
            withExtendedLifetime(peer) {}
        }
    }

    @Test("input that has come in time counts, although the loop was late itself", arguments: [true, false])
    func lateLoop(countsInputOnly: Bool) throws {
        try withSimulation { simulation in
            var closed: RunLoop.Instant?
            let limits = limits {
                if countsInputOnly { $0.inputTimeout = .seconds(10) } else { $0.idleTimeout = .seconds(10) }
            }
            let (connection, peer) = try makePair(on: simulation.loop, limits: limits) { $1.count }
            connection.closeHandler = { _, _ in closed = simulation.now }
            simulation.loop.perform(at: ms(9_000)) {
                peer.send("hello")
                simulation.spend(.seconds(20))
            }
            simulation.advance(by: .milliseconds(38_999))
            #expect(closed == nil)
            simulation.advance(by: .seconds(20))
            #expect(closed == ms(39_000))
        }
    }

    @Test("the time for input does not pass while the connection does not read")
    func notReading() throws {
        try withSimulation { simulation in
            var closed: RunLoop.Instant?
            let limits = limits { $0.inputTimeout = .seconds(10) }
            let (connection, peer) = try makePair(on: simulation.loop, limits: limits) { $1.count }
            connection.closeHandler = { _, _ in closed = simulation.now }
            simulation.advance(by: .seconds(9))
            connection.pauseReading()
            simulation.advance(by: .seconds(60))
            connection.resumeReading()
            simulation.advance(by: .milliseconds(9_999))
            #expect(closed == nil)
            simulation.advance(by: .seconds(20))
            #expect(closed == ms(79_000))
            withExtendedLifetime(peer) {}
        }
    }

    // MARK: Bytes

    @Test("many connections share a budget: a connection that grows beyond it closes, and gives back its share")
    func budget() throws {
        try withSimulation { simulation in
            let budget = Connection.InputBudget(bytes: 100_000)
            let limits = limits { $0.inputBudget = budget }
            var closed: [Int] = []
            let pairs = try (0..<4).map { number in
                let pair = try makePair(on: simulation.loop, limits: limits) { _, _ in 0 }
                pair.connection.closeHandler = {
                    #expect($1 == .inputLimit)
                    closed.append(number)
                }
                return pair
            }
            for (number, pair) in pairs.enumerated() where number < 3 {
                pair.peer.send(String(repeating: "x", count: 30_000))
                simulation.advance(by: .zero)
            }
            #expect(budget.used == 90_000 && closed == [])
            pairs[3].peer.send(String(repeating: "x", count: 30_000))
            simulation.advance(by: .zero)
            #expect(budget.used == 90_000 && closed == [3])
            pairs[0].connection.closeHandler = nil
            pairs[0].connection.close()
            #expect(budget.used == 60_000)
            pairs[1].peer.send(String(repeating: "x", count: 40_000))
            simulation.advance(by: .zero)
            #expect(budget.used == 100_000 && closed == [3])
            pairs[2].peer.send("x")
            simulation.advance(by: .zero)
            #expect(budget.used == 70_000 && closed == [3, 2])
            pairs[1].connection.closeHandler = nil
            pairs[1].connection.close()
            #expect(budget.used == 0)
        }
    }

    @Test("input that the program holds counts for its limit and for the budget")
    func held() throws {
        try withSimulation { simulation in
            let budget = Connection.InputBudget(bytes: 1_000)
            var reasons: [Connection.CloseReason] = []
            func pair(_ maximum: Int, _ held: Int) throws -> (connection: Connection, peer: Peer) {
                let limits = limits {
                    $0.inputBudget = budget
                    $0.maximumInput = maximum
                }
                let pair = try makePair(on: simulation.loop, limits: limits) { connection, bytes in
                    connection.heldInput = held
                    return bytes.count
                }
                pair.connection.closeHandler = { reasons.append($1) }
                pair.peer.send("x")
                simulation.advance(by: .zero)
                return pair
            }
            let first = try pair(700, 600)
            #expect(budget.used == 600 && reasons == [])
            let second = try pair(700, 500)
            #expect(budget.used == 600 && reasons == [.inputLimit])
            let third = try pair(300, 301)
            #expect(budget.used == 600 && reasons == [.inputLimit, .inputLimit])
            withExtendedLifetime((first, second, third)) {}
        }
    }

    @Test("a connection for tasks counts in the budget, too, and a connection that moves takes its share along")
    func tasksAndMoves() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let budget = Connection.InputBudget(bytes: 1_000)
            let limits = limits { $0.inputBudget = budget }
            let (one, other) = makeSockets()
            let awaited = Connection(adopting: one, on: loop, limits: limits)
            try awaited.start()
            let peer = Peer(other)
            peer.send("12345")
            simulation.advance(by: .zero)
            #expect(budget.used == 5)
            var taken: [UInt8]?
            loop.task { taken = try await awaited.read(atMost: 2) }
            simulation.advance(by: .zero)
            #expect(taken?.count == 2 && budget.used == 3)
            awaited.close()
            #expect(budget.used == 0)

            let (connection, second) = try makePair(on: loop, limits: limits) { _, _ in 0 }
            second.send("1234")
            simulation.advance(by: .zero)
            #expect(budget.used == 4)
            nonisolated(unsafe) var arrived: Connection?
            connection.move(to: loop.remote) { loop, moved in
                arrived = Connection(adopting: moved, on: loop) { _, _ in 0 }
                try! arrived!.start()
            }
            simulation.advance(by: .milliseconds(1))
            #expect(arrived?.unusedInput == 4 && budget.used == 4)
            arrived?.close()
            #expect(budget.used == 0)
        }
    }
}
