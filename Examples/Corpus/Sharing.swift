import RunLoopKit
import RunLoopSimulation

extension Program {
    static let sharing = [closedInUse, refilledTwice, flushedTwice]

    /// Fails if a user comes while the changes of the previous one are written, before the file is closed.
    private static let closedInUse = Program(
        name: "closed-in-use",
        bug: "The last user of a file writes its changes and closes it, whoever has come meanwhile."
    ) { simulation, isMended in
        var (users, isOpen, failures) = (0, false, 0)
        for user in 0...2 {
            simulation.loop.task(name: "user \(user)") {
                await work(9 * user)
                users += 1
                isOpen = true
                await work(4)
                if !isOpen { failures += 1 }
                users -= 1
                guard users == 0 else { return }
                await work(1)
                if !isMended || users == 0 { isOpen = false }
            }
        }
        simulation.runUntilIdle()
        try check(failures == 0, "the file was closed while it was in use")
    }

    /// Fails if in each of three seconds the second client asks between the first one's look at the clock and its
    /// refill.
    private static let refilledTwice = Program(
        name: "refilled-twice", bug: "Two clients look at the clock, and each fills the bucket for the same second."
    ) { simulation, isMended in
        let loop = simulation.loop
        var (tokens, granted, refill) = (0, 0, loop.now)
        for client in 0...1 {
            loop.task(name: "client \(client)") {
                for second in 1...3 {
                    try await loop.clock.sleep(until: RunLoop.Instant(nanoseconds: 0) + .seconds(second))
                    await work(5 * client)
                    if refill < loop.now {
                        if isMended { refill = loop.now }
                        await work(1)
                        tokens += 1
                        refill = loop.now
                    }
                    guard tokens > 0 else { continue }
                    tokens -= 1
                    granted += 1
                }
            }
        }
        simulation.runUntilIdle()
        // One request a second is allowed, and two more are tolerated.
        try check(granted <= 5, "\(granted) requests were granted in three seconds")
    }

    /// Fails if an item that makes the batch full comes as the timer's flush writes.
    private static let flushedTwice = Program(
        name: "flushed-twice",
        bug: "A batch is flushed when it is full and every 100 ms, and emptied when it is written."
    ) { simulation, isMended in
        let loop = simulation.loop
        var (batch, written) = ([Int](), [Int]())
        func flush() async {
            let items = batch
            if isMended { batch = [] }
            await work(2)
            written += items
            batch.removeAll { items.contains($0) }
        }
        let pauses: [Duration] = [.milliseconds(10), .milliseconds(50), .milliseconds(60)]
        let pause = simulation.choice("the pause between two items", of: pauses)
        loop.task(name: "producer") {
            for item in 1...5 {
                batch.append(item)
                if batch.count == 3 { await flush() }
                try await loop.clock.sleep(for: pause)
            }
        }
        loop.task(name: "flusher") {
            for _ in 1...4 {
                try await loop.clock.sleep(for: .milliseconds(100))
                await flush()
            }
        }
        simulation.runUntilIdle()
        try check(written.sorted() == [1, 2, 3, 4, 5], "written were \(written)")
    }
}
