import RunLoopExploration
import RunLoopKit
import RunLoopSimulation

extension Program {
    static let moments = [jobRunsTwice, lateHeartbeat, shownTwice, renewedTooLate, overtakenInNestedRun]

    /// Fails if the clock is set back by a second. That date comes again a second later.
    private static let jobRunsTwice = Program(
        name: "job-runs-twice",
        bug: "A job that runs every hour looks at the clock, which was set back, for its next date."
    ) { simulation, isMended in
        let loop = simulation.loop
        // Seconds since 1970.
        var dates: [Int64] = []
        func arm() {
            let now = loop.wallTime
            let former = isMended ? max(now.secondsSince1970, dates.last ?? 0) : now.secondsSince1970
            let date = (former / 3600 + 1) * 3600
            loop.perform(afterDelay: RunLoop.WallTime(secondsSince1970: date) - now) {
                dates.append(date)
                arm()
            }
        }
        arm()
        for _ in 1...3 {
            simulation.advance(by: .seconds(2_000))
            if simulation.mayHappen("the clock is a second fast, and is set") {
                simulation.wallTime = simulation.wallTime - .seconds(1)
            }
        }
        simulation.advance(by: .seconds(2_000))
        try check(Set(dates).count == dates.count, "the job ran twice for one date")
    }

    /// Fails if the longest drag begins at the last of the moments: a timer fires late. Only a limit reveals it.
    private static let lateHeartbeat = Program(
        name: "late-heartbeat",
        bug: "A heartbeat, which may be 250 ms late, is sent by a timer of the default mode, which a drag holds up.",
        limits: Exploration.Limits(latestFire: .milliseconds(250))
    ) { simulation, isMended in
        let loop = simulation.loop
        loop.addCommonMode(.tracking)
        let heartbeat = Timer(timeInterval: .seconds(1), repeats: true) { _ in }
        loop.add(heartbeat, forMode: isMended ? .common : .default)
        let lengths: [Duration] = [.milliseconds(100), .milliseconds(250), .milliseconds(400)]
        let length = simulation.choice("how long a drag takes", of: lengths)
        let moments: [Duration] = [
            .milliseconds(1_200), .milliseconds(1_500), .milliseconds(1_700), .milliseconds(1_900),
        ]
        let start = loop.now + simulation.choice("when it begins", of: moments)
        simulation.drag(from: start, until: start + length)
        simulation.advance(by: .seconds(4))
    }

    /// Fails if the second key comes 100 ms after the first one, while the text of the first one is being laid out.
    private static let shownTwice = Program(
        name: "shown-twice",
        bug: "A text is shown when no key has come for 100 ms; what is being laid out then is shown nevertheless."
    ) { simulation, isMended in
        let loop = simulation.loop
        var (text, shown) = (0, [Int]())
        var display: Task<Void, any Error>?
        func press() {
            text += 1
            display?.cancel()
            display = loop.task(name: "display") {
                try await loop.clock.sleep(for: .milliseconds(100))
                await work(1)
                if isMended { try Task.checkCancellation() }
                shown.append(text)
            }
        }
        loop.task(name: "user") {
            press()
            let pauses: [Duration] = [.milliseconds(30), .milliseconds(100), .milliseconds(300)]
            try await loop.clock.sleep(for: simulation.choice("the pause between two keys", of: pauses))
            await work(4)
            press()
        }
        simulation.runUntilIdle()
        try check(Set(shown).count == shown.count, "the texts \(shown) were shown")
    }

    /// Fails if the renewal lasts until the lease expires, and the other process takes the lease before the renewal
    /// arrives.
    private static let renewedTooLate = Program(
        name: "renewed-too-late",
        bug: "A leader's renewal of its lease comes when the lease has expired, and another one leads."
    ) { simulation, isMended in
        let loop = simulation.loop
        let start = loop.now
        var (holder, expiry) = (1, start + .seconds(3))
        // The processes that consider themselves the leader.
        var leaders: Set = [1]
        loop.task(name: "leader") {
            try await loop.clock.sleep(until: start + .seconds(2))
            let times: [Duration] = [.milliseconds(10), .milliseconds(500), .seconds(1)]
            try await loop.clock.sleep(for: simulation.choice("how long the renewal takes", of: times))
            if isMended && holder != 1 {
                leaders.remove(1)
            } else {
                (holder, expiry) = (1, loop.now + .seconds(3))
            }
        }
        loop.task(name: "follower") {
            try await loop.clock.sleep(until: start + .seconds(3))
            // The process asks the others.
            await work(4)
            guard expiry <= loop.now else { return }
            (holder, expiry) = (2, loop.now + .seconds(3))
            leaders.insert(2)
        }
        simulation.runUntilIdle()
        try check(leaders.count == 1, "\(leaders.sorted()) both lead")
    }

    /// Fails if the disk is slow with the first request, and the second one comes meanwhile.
    private static let overtakenInNestedRun = Program(
        name: "overtaken-in-nested-run",
        bug: "The handler of a request waits for the disk in a nested run, in which the next request is handled."
    ) { simulation, isMended in
        let main = simulation.loop.remote
        let client = makeThread("client")
        let answered = Shared<[Int]>([])
        @Sendable func handle(_ request: Int, on loop: RunLoop) {
            if simulation.mayHappen("the disk is slow") {
                let mode = isMended ? RunLoop.Mode("waiting for the disk") : .default
                let end = loop.now + .milliseconds(50)
                loop.perform(at: end, inModes: RunLoop.Modes(mode)) {}
                while loop.now < end { loop.run(in: mode, until: end) }
            }
            answered.value.append(request)
        }
        let pauses: [Duration] = [.milliseconds(100), .milliseconds(20), .milliseconds(200)]
        let pause = simulation.choice("the pause between two requests", of: pauses)
        client.perform { loop in
            for request in 1...2 {
                loop.perform(afterDelay: pause * (request - 1)) { main.perform { handle(request, on: $0) } }
            }
        }
        simulation.runUntilIdle()
        try check(answered.value == [1, 2], "requests were answered in the order \(answered.value)")
    }
}
