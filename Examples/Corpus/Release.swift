import RunLoopKit
import RunLoopSimulation
import RunLoopTesting

extension Program {
    /// Tasks, streams and timers that hold something too long, or in another order.
    static let release = [overtakingTasks, lostCredits, leakedByTheLoser, closedInADrag]

    /// Fails if the task for the last key comes to the actor before the task for an earlier one.
    private static let overtakingTasks = Program(
        name: "overtaking-tasks", bug: "A handler starts a task for each key, and each task tells an actor of its key."
    ) { simulation, isMended in
        simulation.captureExecutors()
        let loop = simulation.loop
        let document = Document()
        let (keys, typed) = AsyncStream.makeStream(of: Int.self)
        if isMended {
            Task { for await key in keys { await document.type(key) } }
        }
        for key in 1...5 {
            loop.perform(afterDelay: .milliseconds(100) * (key / 2)) {
                if isMended { typed.yield(key) } else { Task { await document.type(key) } }
                if key == 5 { typed.finish() }
            }
        }
        let text = Shared<[Int]>([])
        loop.perform(afterDelay: .seconds(1)) {
            Task { text.value = await document.text }
        }
        simulation.runUntilIdle()
        try check(text.value == [1, 2, 3, 4, 5], "the text is \(text.value)")
    }

    private actor Document {
        private(set) var text: [Int] = []

        func type(_ key: Int) {
            text.append(key)
        }
    }

    /// Fails if four of the messages take long, and so are not answered: no credit is left.
    private static let lostCredits = Program(
        name: "lost-credits",
        bug: "A receiver gives a credit back with each answer, and does not answer a message that has become too old."
    ) { simulation, isMended in
        let loop = simulation.loop
        let (changes, arrivals) = (Waiters(), Waiters())
        var (credits, sent, ended) = (4, 0, 0)
        var queue: [RunLoop.Instant] = []
        loop.task(name: "sender") {
            while sent < 40 {
                while credits == 0 { try await changes.wait() }
                credits -= 1
                sent += 1
                queue.append(loop.now)
                arrivals.wakeFirst()
                try await loop.clock.sleep(for: .milliseconds(50))
            }
        }
        loop.task(name: "receiver") {
            while ended < 40 {
                while queue.isEmpty { try await arrivals.wait() }
                let arrival = queue.removeFirst()
                let times: [Duration] = [.milliseconds(10), .milliseconds(160)]
                try await loop.clock.sleep(for: simulation.choice("how long a message takes", of: times))
                let isOld = loop.now - arrival > .milliseconds(150)
                ended += 1
                guard isMended || !isOld else { continue }
                credits += 1
                changes.wakeFirst()
            }
        }
        simulation.runUntilIdle()
        try check(sent == 40, "\(sent) of 40 messages were sent, and there are \(credits) credits")
    }

    /// Fails if in four requests the first server is slow, and the second one answers while the first one has a
    /// connection of the pool: no connection is left for the next request.
    private static let leakedByTheLoser = Program(
        name: "leaked-by-the-loser",
        bug: "Of two servers that are asked, the later one is cancelled, and does not give its connection back."
    ) { simulation, isMended in
        let loop = simulation.loop
        let clock = loop.clock
        let pool = Pool(4)
        let answered = Shared(0)
        let times: [Duration] = [.milliseconds(20), .milliseconds(200)]
        @Sendable func ask(_ server: String) async throws {
            try await pool.take()
            do {
                try await clock.sleep(for: simulation.choice("how long \(server) takes", of: times))
            } catch {
                if isMended { pool.giveBack() }
                throw error
            }
            pool.giveBack()
        }
        loop.task(name: "client") {
            for _ in 0..<12 {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask { try await ask("the first server") }
                    group.addTask {
                        try await clock.sleep(for: .milliseconds(50))
                        try await ask("the second server")
                    }
                    try await group.next()
                    group.cancelAll()
                }
                answered.value += 1
            }
        }
        simulation.runUntilIdle()
        try check(answered.value == 12, "\(answered.value) of 12 requests were answered")
    }

    private final class Pool: @unchecked Sendable {
        // Unchecked: used only on the loop's thread.
        private var free: Int
        private let waiters = Waiters()

        init(_ count: Int) {
            free = count
        }

        func take() async throws {
            if free > 0 { free -= 1 } else { try await waiters.wait() }
        }

        func giveBack() {
            if !waiters.wakeFirst() { free += 1 }
        }
    }

    /// Fails if a drag begins between half a second and a second after the last change, and lasts until the document is
    /// closed, because it has not changed for two seconds.
    private static let closedInADrag = Program(
        name: "closed-in-a-drag",
        bug: "A document is saved by a timer of the default mode, and closed by one of the common modes."
    ) { simulation, isMended in
        let loop = simulation.loop
        loop.addCommonMode(.tracking)
        var (text, saved, isClosed) = (0, 0, false)
        var lost: Int?
        var (saving, closing) = (nil as DelayedCall?, nil as DelayedCall?)
        func change() {
            isClosed = false
            text += 1
            saving?.cancel()
            closing?.cancel()
            saving = loop.perform(afterDelay: .seconds(1), inModes: isMended ? .common : .default) {
                if !isClosed { saved = text }
            }
            closing = loop.perform(afterDelay: .seconds(2), inModes: .common) {
                isClosed = true
                if saved != text { lost = text }
            }
        }
        for (number, pause) in [300, 800, 2_900, 3_200, 5_900, 6_100, 9_000].enumerated() {
            loop.perform(afterDelay: .milliseconds(pause + 100 * number), inModes: .common) { change() }
        }
        let ticks = Timer(timeInterval: .milliseconds(250), repeats: true) { _ in }
        loop.add(ticks, forMode: .default)
        simulation.mayDrag(for: .milliseconds(1_500), atMost: 3)
        simulation.advance(by: .seconds(15))
        try check(lost == nil, "text \(lost ?? 0) was closed, and \(saved) was saved")
    }
}
