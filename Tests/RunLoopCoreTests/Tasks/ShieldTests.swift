@_spi(Ports) import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("Shields")
struct ShieldTests {
    /// - Returns: the words that a task logs, each with its time in seconds.
    private func words(
        cancelledAt date: Double = 2,
        _ operation: @escaping (RunLoop, _ log: @escaping (String) -> Void) async throws -> Void
    ) -> [String] {
        withSimulation { simulation in
            let loop = simulation.loop
            var words: [String] = []
            let log = { (word: String) in words.append("\(word) \(loop.now.nanoseconds / 1_000_000_000)") }
            let task = loop.task {
                try await operation(loop, log)
            } then: {
                if case .failure(let error) = $0 { log("\(type(of: error))") }
            }
            loop.perform(at: seconds(date)) { task.cancel() }
            #expect(simulation.runUntilIdle() == .done)
            loop.checkInvariants()
            return words
        }
    }

    @Test("a task that has been cancelled waits in a shield, and is cancelled as before after it")
    func afterCancellation() {
        let words = words { loop, log in
            do { try await loop.clock.sleep(for: .seconds(1000)) } catch {
                let answer = try await loop.withShield(.seconds(9)) {
                    #expect(!Task.isCancelled)
                    try await loop.clock.sleep(for: .seconds(3))
                    return "clean"
                }
                log(answer)
                try await loop.clock.sleep(for: .zero)
            }
        }
        #expect(words == ["clean 5", "CancellationError 5"])
    }

    @Test("a cancellation that comes during a shield waits for its end")
    func duringShield() {
        let words = words { loop, log in
            try await loop.withShield(.seconds(9)) {
                try await loop.clock.sleep(for: .seconds(3))
                log("clean")
            }
            try await loop.clock.sleep(for: .seconds(1))
        }
        #expect(words == ["clean 3", "CancellationError 3"])
    }

    @Test("a shield has its own limit, and reports that it has passed although its caller is cancelled")
    func limit() {
        let words = words { loop, log in
            do {
                try await loop.withShield(.seconds(7)) { try await loop.clock.sleep(for: .seconds(1000)) }
            } catch let error as RunLoop.TimeoutError {
                log("limit \(error.deadline)")
                throw error
            }
        }
        #expect(words == ["limit 7.000000000 7", "TimeoutError 7"])
    }

    @Test("deadlines further out do not reach into a shield, whether the loop or a computing body comes to them")
    func deadlines() {
        let words = words(cancelledAt: 1000) { loop, log in
            try await loop.withTimeout(.seconds(1)) {
                try await loop.withShield(.seconds(9)) {
                    try await loop.clock.sleep(for: .seconds(2))
                    try await loop.withTasks { tasks in
                        tasks.start { try await loop.clock.sleep(for: .seconds(2)) }
                    }
                    log("clean")
                }
                try await loop.clock.sleep(for: .zero)
            }
        }
        #expect(words == ["clean 4", "TimeoutError 4"])
        withSimulation { simulation in
            let loop = simulation.loop
            var error: (any Error)?
            loop.task {
                try await loop.withTimeout(.seconds(1)) {
                    try await loop.withShield(.seconds(9)) {
                        simulation.spend(.seconds(2))
                        try await loop.clock.sleep(for: .seconds(1))
                    }
                }
            } then: {
                if case .failure(let thrown) = $0 { error = thrown }
            }
            #expect(simulation.runUntilIdle() == .done && error == nil)
        }
    }

    @Test("a loop of withLoop waits for the shields of tasks that it cancels at its end")
    func endOfLoop() async throws {
        let log = Log<String>()
        try await withLoop { loop in
            var isShielded = false
            loop.task {
                try await loop.withShield(.seconds(1000)) {
                    isShielded = true
                    try await loop.withTimeout(.seconds(1000)) { try await loop.clock.sleep(for: .milliseconds(5)) }
                    log("clean")
                }
                try await loop.clock.sleep(for: .zero)
                log("went on")
            }
            while !isShielded { try await loop.clock.sleep(for: .milliseconds(1)) }
        }
        #expect(log.entries == ["clean"])
    }

    @Test("the end of the loop ends the waits in a shield")
    func loopEnds() async {
        let log = Log<String>()
        let thread = LoopThread(name: "short") { loop in
            loop.task {
                try await loop.withShield(.seconds(1000)) { try await loop.clock.sleep(for: .seconds(1000)) }
            } then: {
                log("\($0)")
            }
            loop.perform(afterDelay: .milliseconds(2)) { loop.stop() }
        }
        await thread.ended()
        #expect(log.entries == ["failure(the run loop \"short\" has ended)"])
    }
}
