import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix

extension Program {
    static let faults = [retriedRetries, countedTwice, undoOvertakesDo, restartedTwice, loadingHerd, appliedTwice]

    /// Fails if three answers are lost in a row.
    private static let retriedRetries = Program(
        name: "retried-retries", bug: "Two layers try three times each, and a server in trouble is asked nine times."
    ) { simulation, isMended in
        var asked = 0
        func ask() async throws {
            asked += 1
            if simulation.mayHappen("the answer is lost") { throw Lost() }
        }
        func call() async throws {
            if isMended { try await ask() } else { try await trying(3, ask) }
        }
        simulation.loop.task(name: "client") { try? await trying(3, call) }
        simulation.runUntilIdle()
        try check(asked <= 3, "the server was asked \(asked) times")
    }

    private struct Lost: Error {}

    private static func trying(_ times: Int, _ body: () async throws -> Void) async throws {
        for attempt in 1...times {
            do { return try await body() } catch  where attempt < times { await work(1) }
        }
    }

    /// Fails if two of the three replicas get neither the first request nor the second one.
    private static let countedTwice = Program(
        name: "counted-twice", bug: "A record is safe when two have acknowledged it, or one of them has done so twice."
    ) { simulation, isMended in
        let loop = simulation.loop
        var (copies, acknowledgements) = (Set<Int>(), [Int]())
        // The number of copies when the record counted as safe.
        var safeCopies: Int?
        func send() {
            for replica in 1...3 where !simulation.mayHappen("a request is lost") {
                loop.perform(afterDelay: .milliseconds(1)) {
                    copies.insert(replica)
                    loop.perform(afterDelay: .milliseconds(1)) {
                        acknowledgements.append(replica)
                        let count = isMended ? Set(acknowledgements).count : acknowledgements.count
                        if count == 2 { safeCopies = copies.count }
                    }
                }
            }
        }
        send()
        loop.perform(afterDelay: .milliseconds(10)) {
            if safeCopies == nil { send() }
        }
        simulation.runUntilIdle()
        try check(safeCopies ?? 2 >= 2, "the record counts as safe, and there is one copy of it")
    }

    /// Fails if the order is lost twice, and the customer's undo comes before it is sent for the third time.
    private static let undoOvertakesDo = Program(
        name: "undo-overtakes-do", bug: "An undo for which there is nothing to undo is forgotten; its do comes later."
    ) { simulation, isMended in
        let loop = simulation.loop
        var (isPlaced, isUndone) = (false, false)
        loop.task(name: "shop") {
            var losses = 0
            while losses < 2 && simulation.mayHappen("the order is lost") {
                losses += 1
                // The customer learns of the trouble, and does not like it.
                if losses == 2 {
                    loop.task(name: "customer") {
                        await work(9)
                        isPlaced = false
                        isUndone = true
                    }
                }
                await work(3)
            }
            isPlaced = !isMended || !isUndone
        }
        simulation.runUntilIdle()
        try check(!isPlaced || !isUndone, "the order is placed, and it was undone")
    }

    /// Fails if the child fails, and the monitor finds it missing before the reaper has started another one, and starts
    /// another one after that.
    private static let restartedTwice = Program(
        name: "restarted-twice", bug: "A monitor restarts a child that was missing, and has just been restarted."
    ) { simulation, isMended in
        let loop = simulation.loop
        var (alive, generation, most) = (0, 0, 0)
        func start() {
            generation += 1
            alive += 1
            most = max(most, alive)
            let isFirst = generation == 1
            loop.task(name: "child") {
                await work(7)
                guard isFirst && simulation.mayHappen("the child fails") else { return }
                alive -= 1
                loop.task(name: "reaper") { restart(1) }
            }
        }
        /// - Parameter failed: the generation that has failed.
        func restart(_ failed: Int) {
            if !isMended || failed == generation { start() }
        }
        start()
        loop.task(name: "monitor") {
            for _ in 1...5 {
                await work(4)
                guard alive == 0 else { continue }
                let failed = generation
                // The task writes a report.
                await work(2)
                restart(failed)
            }
        }
        simulation.runUntilIdle()
        try check(most == 1, "there were \(most) children at a time")
    }

    /// Fails if a load fails while two tasks wait for it.
    private static let loadingHerd = Program(
        name: "loading-herd", bug: "Whoever waits for a load that fails loads by itself, all at the same time."
    ) { simulation, isMended in
        let ended = Waiters()
        var (value, isLoading, loads, most) = (nil as Int?, false, 0, 0)
        for reader in 0...2 {
            simulation.loop.task(name: "reader \(reader)") {
                await work([0, 3, 14][reader])
                while value == nil && isLoading {
                    try await ended.wait()
                    if !isMended { break }
                }
                guard value == nil else { return }
                isLoading = true
                loads += 1
                most = max(most, loads)
                await work(6)
                if !simulation.mayHappen("a load fails") { value = 1 }
                loads -= 1
                isLoading = false
                ended.wakeAll()
            }
        }
        simulation.runUntilIdle()
        try check(most == 1, "there were \(most) loads at a time")
    }

    /// Fails if the link is cut while the payment or its answer is under way.
    private static let appliedTwice = Program(
        name: "applied-twice",
        bug: "A payment whose answer does not come is sent again, and the server does not notice.", hasNetwork: true
    ) { simulation, isMended in
        let network = SimulatedNetwork(simulation)
        network.link.latency = .milliseconds(20)
        let address = try Endpoint("10.1.0.1", port: 7)
        let payments = Shared<[UInt8]>([])
        let server = network.addHost("server", addresses: ["10.1.0.1"]) { loop in
            let server = Server(on: loop) { connection, _ in
                connection.receiveHandler = { connection, bytes in
                    for index in bytes.indices {
                        if !isMended || !payments.value.contains(bytes[index]) { payments.value.append(bytes[index]) }
                        connection.write([bytes[index]])
                    }
                    return bytes.count
                }
            }
            try server.listen(on: address)
        }
        let loop = simulation.loop
        loop.task(name: "client") {
            var isAnswered = false
            while !isAnswered {
                let connection = try await Connection.connect(to: address, on: loop)
                let timeout = loop.perform(afterDelay: .seconds(1)) { connection.close() }
                try? await connection.write([1])
                isAnswered = (try? await connection.read()) != nil
                timeout.cancel()
                connection.close()
            }
        }
        // Everything has ended after the first of these moments.
        let moments: [Duration] = [
            .seconds(5), .milliseconds(10), .milliseconds(30), .milliseconds(50), .milliseconds(70),
        ]
        loop.perform(afterDelay: simulation.choice("when the link is cut", of: moments)) {
            network.cut(between: network.test, and: server)
            loop.perform(afterDelay: .milliseconds(1_500)) { network.heal() }
        }
        simulation.advance(by: .seconds(30))
        try check(payments.value == [1], "the payments are \(payments.value)")
    }
}
