import RunLoopExploration
import RunLoopKit
import RunLoopSimulation
import RunLoopTesting

extension Program {
    /// Objects that tasks of one process share, with their histories.
    static let objects = [crossedWrites, releasedForAnother, lostIncrement, halfDoneTransfer]

    /// Fails if one writer has written the store, the other one writes the store and the cache, and then the first one
    /// writes the cache: a reader finds that value, and when it is evicted, the other one.
    private static let crossedWrites = Program(
        name: "crossed-writes", bug: "Two writers write the store and then the cache, each in its own time."
    ) { simulation, isMended in
        let history = History(of: RegisterModel(), in: simulation)
        let turn = TaskLock()
        var (stored, cached) = (0, nil as Int?)
        func write(_ value: Int) async throws {
            if isMended { try await turn.lock() }
            await work(1)
            stored = value
            await work(1)
            cached = value
            if isMended { turn.unlock() }
        }
        for writer in 1...2 {
            simulation.loop.task(name: "writer \(writer)") {
                await work(8 * writer)
                for round in 0..<2 {
                    let value = 10 * writer + round
                    try await history.record(.write(value), by: "writer \(writer)") {
                        try await write(value)
                        return .done
                    }
                    await work(14)
                }
            }
        }
        simulation.loop.task(name: "evictor") {
            for _ in 0..<4 {
                await work(13)
                cached = nil
            }
        }
        simulation.loop.task(name: "reader") {
            for _ in 0..<10 {
                await work(5)
                await history.record(.read, by: "reader") {
                    await work(1)
                    return .value(cached ?? stored)
                }
            }
        }
        simulation.runUntilIdle()
        try history.check()
    }

    /// Fails if the lease of a client that takes long expires, another one acquires the lock, the first one releases
    /// it, and a third one acquires it.
    private static let releasedForAnother = Program(
        name: "released-for-another",
        bug: "A client whose lease has expired releases the lock, which another one holds."
    ) { simulation, isMended in
        let loop = simulation.loop
        let history = History(of: LeaseModel(), in: simulation)
        var (holder, expiry) = (nil as Int?, nil as DelayedCall?)
        func acquire(_ client: Int) -> Bool {
            guard holder == nil else { return false }
            holder = client
            expiry = loop.perform(afterDelay: .seconds(5)) {
                let record = history.begin(.expire(of: client), by: "lock")
                holder = nil
                history.end(record, with: true)
            }
            return true
        }
        func release(_ client: Int) -> Bool {
            let isHolder = holder == client
            guard isHolder || !isMended else { return false }
            expiry?.cancel()
            holder = nil
            return isHolder
        }
        for client in 0..<3 {
            loop.task(name: "client \(client)") {
                let name = "client \(client)"
                try await loop.clock.sleep(for: .milliseconds(700) * client)
                for _ in 0..<4 {
                    // A client asks again every second.
                    while !(await history.record(.acquire(by: client), by: name) { acquire(client) }) {
                        try await loop.clock.sleep(for: .seconds(1))
                    }
                    let times: [Duration] = [.milliseconds(300), .seconds(3), .milliseconds(5_500)]
                    try await loop.clock.sleep(for: simulation.choice("how long the work takes", of: times))
                    await history.record(.release(by: client), by: name) { release(client) }
                    try await loop.clock.sleep(for: .seconds(1))
                }
            }
        }
        simulation.runUntilIdle()
        try history.check()
    }

    /// Fails if a second client is counted while the count of the first one is being saved.
    private static let lostIncrement = Program(
        name: "lost-increment", bug: "An actor counts when it has saved the new count, and serves others meanwhile."
    ) { simulation, isMended in
        simulation.captureExecutors()
        let history = History(of: CounterModel(), in: simulation)
        let counter = Counter(countingFirst: isMended)
        for client in 0..<3 {
            Task {
                await work(9 * client)
                for _ in 0..<3 {
                    await work(24)
                    await history.record(.increment, by: "client \(client)") { await counter.increment() }
                }
                await history.record(.read, by: "client \(client)") { await counter.count }
            }
        }
        simulation.runUntilIdle()
        try history.check()
    }

    private actor Counter {
        private(set) var count = 0
        private let storage = Storage()
        private let countsFirst: Bool

        init(countingFirst countsFirst: Bool) {
            self.countsFirst = countsFirst
        }

        func increment() async -> Int {
            let next = count + 1
            if countsFirst { count = next }
            await storage.save(next)
            if !countsFirst { count = next }
            return next
        }
    }

    private actor Storage {
        private var saved = 0

        func save(_ count: Int) {
            saved = max(saved, count)
        }
    }

    /// Fails if a reader reads the first account after a transfer has changed it, and the second one before the
    /// transfer changes that.
    private static let halfDoneTransfer = Program(
        name: "half-done-transfer",
        bug: "A reader looks whether the version has changed, and a transfer raises it only at its end."
    ) { simulation, isMended in
        let history = History(of: AccountsModel(), in: simulation)
        let turn = TaskLock()
        var (balances, version) = ([100, 0], 0)
        func transfer(_ amount: Int) async throws {
            try await turn.lock()
            // An odd version says that a transfer is under way.
            if isMended { version += 1 }
            balances[0] -= amount
            await work(1)
            balances[1] += amount
            version += isMended ? 1 : 2
            turn.unlock()
        }
        func read() async throws -> [Int] {
            for _ in 0..<2 {
                let seen = version
                guard seen.isMultiple(of: 2) else { break }
                let first = balances[0]
                await work(1)
                let second = balances[1]
                if version == seen { return [first, second] }
            }
            try await turn.lock()
            defer { turn.unlock() }
            return balances
        }
        for client in 1...2 {
            simulation.loop.task(name: "payer \(client)") {
                for amount in 1...2 {
                    await work(7 * client)
                    try await history.record(.transfer(amount), by: "payer \(client)") {
                        try await transfer(amount)
                        return []
                    }
                }
            }
        }
        simulation.loop.task(name: "auditor") {
            for _ in 0..<5 {
                await work(5)
                try await history.record(.read, by: "auditor", read)
            }
        }
        simulation.runUntilIdle()
        try history.check()
    }
}
