import RunLoopKit
import RunLoopSimulation

extension Program {
    static let checkThenAct = [overdrawnAccount, duplicateNumber, reusedSlot, staleCache, oldLeader]

    /// Fails if the second customer's check comes after the first one's, and before the first one's money has gone.
    private static let overdrawnAccount = Program(
        name: "overdrawn-account", bug: "An actor checks the balance, waits, and relies on the check."
    ) { simulation, isMended in
        let account = Account(on: simulation.loop.remote.executor())
        for customer in 0...1 {
            simulation.loop.task(name: "customer \(customer)") {
                await work(6 * customer)
                await account.withdraw(80, checkingTwice: isMended)
            }
        }
        simulation.runUntilIdle()
        let balance = account.assumeIsolated { $0.balance }
        try check(balance >= 0, "the balance is \(balance)")
    }

    private actor Account {
        private let home: RunLoop.Executor
        private(set) var balance = 100
        nonisolated var unownedExecutor: UnownedSerialExecutor { home.serial.asUnownedSerialExecutor() }

        init(on home: RunLoop.Executor) {
            self.home = home
        }

        func withdraw(_ amount: Int, checkingTwice checksTwice: Bool) async {
            guard balance >= amount else { return }
            await work(1)
            if !checksTwice || balance >= amount { balance -= amount }
        }
    }

    /// Fails if the second thread's question reaches the main loop before the first thread's report.
    private static let duplicateNumber = Program(
        name: "duplicate-number", bug: "A thread asks for the next number, uses it, and only then reports it as used."
    ) { simulation, isMended in
        let main = simulation.loop.remote
        let next = Shared(1)
        let numbers = Shared<[Int]>([])
        for name in ["first", "second"] {
            let thread = makeThread(name)
            thread.perform { _ in
                main.perform { _ in
                    let number = next.value
                    if isMended { next.value = number + 1 }
                    thread.perform { _ in
                        numbers.value.append(number)
                        if !isMended { main.perform { _ in next.value = number + 1 } }
                    }
                }
            }
        }
        simulation.runUntilIdle()
        try check(numbers.value.sorted() == [1, 2], "the numbers are \(numbers.value)")
    }

    /// Fails if one task looks at the first free slot and the next one; another task takes both, and gives the first
    /// one back; and then the first task continues.
    private static let reusedSlot = Program(
        name: "reused-slot", bug: "A list of free slots is taken for unchanged if its first slot is the same as before."
    ) { simulation, isMended in
        let slots = FreeSlots(4, countingChanges: isMended)
        simulation.loop.task(name: "one") {
            _ = await slots.take()
        }
        simulation.loop.task(name: "other") {
            let first = await slots.take()
            await work(1)
            _ = await slots.take()
            await work(1)
            slots.giveBack(first)
        }
        simulation.runUntilIdle()
        let (free, taken) = (slots.free, slots.taken)
        try check(free.allSatisfy { !taken.contains($0) }, "slots \(taken) are taken, and \(free) free")
    }

    private final class FreeSlots {
        private(set) var taken: [Int] = []
        private var first: Int?
        /// The slot after each slot.
        private var following: [Int?]
        private var changes = 0
        private let countsChanges: Bool

        init(_ count: Int, countingChanges countsChanges: Bool) {
            following = (1...count).map { $0 < count ? $0 : nil }
            first = 0
            self.countsChanges = countsChanges
        }

        /// There are more slots than tasks request.
        func take() async -> Int {
            while true {
                let (slot, seenChanges) = (first!, changes)
                let next = following[slot]
                await work(1)
                guard first == slot, !countsChanges || changes == seenChanges else { continue }
                first = next
                changes += 1
                taken.append(slot)
                return slot
            }
        }

        func giveBack(_ slot: Int) {
            taken.removeAll { $0 == slot }
            following[slot] = first
            first = slot
            changes += 1
        }

        var free: [Int] {
            var (free, slot) = ([] as [Int], first)
            while let found = slot {
                free.append(found)
                slot = following[found]
            }
            return free
        }
    }

    /// Fails if the writer writes for the last time, and invalidates the cache, while a reader has the old value and
    /// has not cached it yet.
    private static let staleCache = Program(
        name: "stale-cache", bug: "A reader caches what it has read, though the cache was invalidated meanwhile."
    ) { simulation, isMended in
        var (value, cached, invalidations) = (0, nil as Int?, 0)
        simulation.loop.task(name: "reader") {
            for _ in 1...3 {
                if cached == nil {
                    let (read, seenInvalidations) = (value, invalidations)
                    await work(1)
                    if !isMended || invalidations == seenInvalidations { cached = read }
                }
                await work(4)
            }
        }
        simulation.loop.task(name: "writer") {
            for _ in 1...2 {
                await work(4)
                value += 1
                cached = nil
                invalidations += 1
            }
        }
        simulation.runUntilIdle()
        try check(cached ?? value == value, "\(value) was written, and the cache has \(cached ?? 0)")
    }

    /// Fails if the coordinator begins the new epoch, then the worker sees that, finds the old leader, and finds the
    /// epoch unchanged, and only then the coordinator names the new leader.
    private static let oldLeader = Program(
        name: "old-leader", bug: "A coordinator begins an epoch a step before it names the leader of it."
    ) { simulation, isMended in
        var (leader, epoch) = (1, 1)
        var accepted: [(leader: Int, epoch: Int)] = []
        simulation.loop.task(name: "worker") {
            while accepted.count < 3 {
                let seenEpoch = epoch
                await work(1)
                let seenLeader = leader
                await work(1)
                if epoch == seenEpoch { accepted.append((seenLeader, seenEpoch)) }
                await work(2)
            }
        }
        simulation.loop.task(name: "coordinator") {
            await work(5)
            epoch = 2
            if !isMended { await work(1) }
            leader = 2
        }
        simulation.runUntilIdle()
        let wrong = accepted.first { $0.leader != $0.epoch }
        try check(wrong == nil, "leader \(wrong?.leader ?? 0) was accepted in epoch \(wrong?.epoch ?? 0)")
    }
}
