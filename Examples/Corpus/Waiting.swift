import RunLoopKit
import RunLoopSimulation

extension Program {
    static let waiting = [lostWakeUp, cancelledOwner, missedPermit, diningPhilosophers]

    /// Fails if the producer adds the last item after the consumer has found none, and before the consumer waits.
    private static let lostWakeUp = Program(
        name: "lost-wake-up", bug: "A consumer finds no item, says so, and only then begins to wait for one."
    ) { simulation, isMended in
        let arrivals = Waiters()
        var (items, taken) = (0, 0)
        simulation.loop.task(name: "consumer") {
            for _ in 1...2 {
                while items == 0 {
                    if !isMended { await work(1) }
                    try await arrivals.wait()
                }
                items -= 1
                taken += 1
            }
        }
        simulation.loop.task(name: "producer") {
            for _ in 1...2 {
                await work(4)
                items += 1
                arrivals.wakeFirst()
            }
        }
        simulation.runUntilIdle()
        try check(taken == 2, "the consumer waits, and there are \(items) items")
    }

    /// Fails if the guest waits, the holder hands it the permit, and the guest is cancelled before it continues.
    private static let cancelledOwner = Program(
        name: "cancelled-owner", bug: "A task that is cancelled as a permit is handed to it does not give it back."
    ) { simulation, isMended in
        let loop = simulation.loop
        let permit = Permit(isGivenBack: isMended)
        loop.task(name: "holder") {
            try await permit.take()
            await work(6)
            permit.giveBack()
        }
        let guest = loop.task(name: "guest") {
            try await permit.take()
            await work(1)
            permit.giveBack()
        }
        loop.task(name: "canceller") {
            await work(2)
            guest.cancel()
        }
        simulation.runUntilIdle()
        try check(permit.isFree, "no task has the permit, and it is not free")
    }

    private final class Permit {
        private(set) var isFree = true
        private let waiters = Waiters()
        private let isGivenBack: Bool

        /// - Parameter isGivenBack: `true` if a cancelled task gives its permit back.
        init(isGivenBack: Bool) {
            self.isGivenBack = isGivenBack
        }

        func take() async throws {
            if isFree {
                isFree = false
            } else {
                try await waiters.wait()
                guard Task.isCancelled else { return }
                if isGivenBack { giveBack() }
                throw CancellationError()
            }
        }

        func giveBack() {
            if !waiters.wakeFirst() { isFree = true }
        }
    }

    /// Fails if both guests wait, and the second holder gives its permit back before the guest woken by the first one
    /// continues.
    private static let missedPermit = Program(
        name: "missed-permit", bug: "A semaphore wakes a task only when its first permit becomes free."
    ) { simulation, isMended in
        let waiters = Waiters()
        var (free, ended) = (2, 0)
        func add(_ name: String, after delay: Int, for steps: Int) {
            simulation.loop.task(name: name) {
                await work(delay)
                while free == 0 { try await waiters.wait() }
                free -= 1
                await work(steps)
                free += 1
                if isMended || free == 1 { waiters.wakeFirst() }
                ended += 1
            }
        }
        add("holder 1", after: 0, for: 4)
        add("holder 2", after: 0, for: 8)
        add("guest 1", after: 1, for: 1)
        add("guest 2", after: 1, for: 1)
        simulation.runUntilIdle()
        try check(ended == 4, "\(free) permits are free, and \(4 - ended) tasks wait for one")
    }

    /// Fails if each of the four takes its first fork before any of them takes its second one.
    private static let diningPhilosophers = Program(
        name: "dining-philosophers",
        bug: "Each of four tasks takes the lock on its left, and then the one on its right."
    ) { simulation, isMended in
        let forks = (0..<4).map { _ in TaskLock() }
        for seat in forks.indices {
            simulation.loop.task(name: "philosopher \(seat)") {
                // The twin takes the fork with the lower number first.
                let isLast = seat == forks.count - 1
                let left = forks[isMended && isLast ? 0 : seat]
                let right = forks[isMended && isLast ? seat : (seat + 1) % forks.count]
                await work(3 * seat)
                try await left.lock()
                await work(1)
                try await right.lock()
                await work(1)
                right.unlock()
                left.unlock()
            }
        }
        let standing = simulation.runUntilIdle()
        if case .stuck(let waits) = standing { try check(waits.isEmpty, "each has one fork, and waits for another") }
    }
}
