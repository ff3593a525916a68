import RunLoopExploration
import RunLoopKit
import RunLoopSimulation
import RunLoopTesting
import TestSupport
import Testing

/// A gate whose waits are enqueued and cancelled by unordered tasks: a wait cancelled before it is enqueued is lost.
private actor Gate {
    private var waits: [Int: CheckedContinuation<Bool, Never>] = [:]

    private func enqueue(_ number: Int, _ wait: CheckedContinuation<Bool, Never>) { waits[number] = wait }

    private func cancel(_ number: Int) { waits.removeValue(forKey: number)?.resume(returning: false) }

    func open() {
        for wait in waits.values { wait.resume(returning: true) }
        waits = [:]
    }

    nonisolated func waitByTask(_ number: Int) async -> Bool {
        await withTaskCancellationHandler {
            await withCheckedContinuation { wait in
                Task { await enqueue(number, wait) }
            }
        } onCancel: {
            Task { await cancel(number) }
        }
    }

    private func enter(_ number: Int) async -> Bool {
        await withCheckedContinuation { waits[number] = $0 }
    }

    /// Waits for a number, without a task for the enqueue.
    nonisolated func wait(_ number: Int) async -> Bool {
        await withTaskCancellationHandler {
            await enter(number)
        } onCancel: {
            Task { await cancel(number) }
        }
    }
}

private actor Numbers {
    private var last = 0

    func next() -> Int {
        last += 1
        return last
    }
}

@Suite("Actors of the default executor in an exploration", .serialized)
struct DefaultActorTests {
    private static func finding(
        _ schedules: Int, _ program: @escaping @Sendable (Simulation) throws -> Void
    ) -> Exploration.Finding? {
        let result = Exploration(schedules: schedules, seed: 1).run { simulation in
            simulation.captureExecutors()
            try program(simulation)
        }
        return if case .failed(let finding) = result { finding } else { nil }
    }

    private struct Unmet: Error {}

    @Test(
        "a cancel that overtakes a wait on its way into the actor is found",
        arguments: [false, true])
    func lostWait(byTask: Bool) throws {
        let finding = Self.finding(100) { simulation in
            let (gate, ended) = (Gate(), Counter())
            let task = Task {
                _ = byTask ? await gate.waitByTask(1) : await gate.wait(1)
                ended.add()
            }
            Task { task.cancel() }
            simulation.runUntilIdle()
            guard ended.value == 1 else { throw Unmet() }
        }
        try #require(finding != nil)
        #expect(finding!.fault.description.contains("Unmet"), "\(finding!)")
    }

    @Test("a return from an actor can be overtaken")
    func overtakenReturn() {
        let finding = Self.finding(100) { simulation in
            let (numbers, log) = (Numbers(), Log<Int>())
            for _ in 0..<2 { Task { log.append(await numbers.next()) } }
            simulation.runUntilIdle()
            guard log.entries == [1, 2] else { throw Unmet() }
        }
        #expect(finding != nil)
    }

    @Test("an actor runs one call at a time, and none is lost")
    func isolation() {
        let finding = Self.finding(300) { simulation in
            let (numbers, others, log) = (Numbers(), Numbers(), Log<Int>())
            for _ in 0..<3 {
                Task {
                    for _ in 0..<2 {
                        log.append(await numbers.next())
                        _ = await others.next()
                    }
                }
            }
            let loop = simulation.loop
            loop.task { log.append(await numbers.next()) }
            simulation.runUntilIdle()
            guard log.entries.count == 7, Set(log.entries).count == 7 else { throw Unmet() }
        }
        #expect(finding == nil, "\(finding!)")
    }

    @Test("a task that prefers an executor calls an actor on its thread")
    func preferring() {
        let finding = Self.finding(50) { simulation in
            let numbers = Where()
            let home = simulation.loop.remote.executor()
            let log = Log<Bool>()
            Task(executorPreference: home.task) {
                log.append(await numbers.isOnLoop(home))
                log.append(home.remote.isCurrent)
            }
            simulation.runUntilIdle()
            guard log.entries == [true, true] else { throw Unmet() }
        }
        #expect(finding == nil, "\(finding!)")
    }
}

private actor Where {
    func isOnLoop(_ home: RunLoopKit.RunLoop.Executor) -> Bool { home.remote.isCurrent }
}
