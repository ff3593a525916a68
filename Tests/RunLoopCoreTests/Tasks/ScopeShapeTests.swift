@_spi(Ports) import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

// The forms in which people write scopes. Half of the test is that they compile.

/// An object that belongs to a thread.
private final class Record {
    var count = 0
}

private nonisolated(nonsending) func onwards(_ loop: RunLoop, _ record: Record, _ total: inout Int) async throws
    -> Record
{
    var own = 0
    let made = try await loop.withTimeout(.seconds(9)) {
        own += 1
        record.count += 1
        total += 1
        try await loop.clock.sleep(for: .seconds(1))
        return Record()
    }
    try await loop.withTasks { tasks in
        tasks.start {
            record.count += 1
            own += 1
        }
        tasks.start { made.count += 1 }
    }
    total += own
    return made
}

private func elsewhere(_ loop: RunLoop, _ record: Record) async throws -> Int {
    try await loop.withTimeout(.seconds(9)) { record.count += 1 }
    let records = try await loop.withTasks { tasks in
        let (first, second) = (tasks.start { record }, tasks.start { Record() })
        return try await [first.value, second.value]
    }
    return records.map(\.count).reduce(0, +)
}

private actor Counter {
    private let home: RunLoop.Executor
    private let record = Record()
    private var count = 0
    nonisolated var unownedExecutor: UnownedSerialExecutor { home.serial.asUnownedSerialExecutor() }

    init(on home: RunLoop.Executor) {
        self.home = home
    }

    private var loop: RunLoop { RunLoop.installed! }

    func work() async throws -> Int {
        let record = try await loop.withTimeout(.seconds(9)) {
            preconditionIsolated()
            count += 1
            try await loop.clock.sleep(for: .seconds(1))
            preconditionIsolated()
            return self.record
        }
        try await loop.withTasks { tasks in
            preconditionIsolated()
            for _ in 0..<3 {
                tasks.start {
                    self.preconditionIsolated()
                    self.count += 1
                    try await self.loop.clock.sleep(for: .seconds(1))
                    self.preconditionIsolated()
                    self.record.count += 1
                }
            }
        }
        return count + record.count
    }
}

@Suite("Forms of scopes")
struct ScopeShapeTests {
    @Test("in a task of a loop and the functions that it calls, with values that belong to the thread")
    func tasks() {
        withSimulation { simulation in
            let (loop, record) = (simulation.loop, Record())
            var numbers: [Int] = []
            loop.task {
                var total = 10
                _ = try await onwards(loop, record, &total)
                numbers.append(total)
                numbers.append(try await elsewhere(loop, record))
            }
            #expect(simulation.runUntilIdle() == .done)
            #expect(numbers == [13, 3] && record.count == 3)
        }
    }

    @Test("in an actor that lives on the loop, whose bodies and tasks stay isolated to it")
    func actors() {
        withSimulation { simulation in
            let (home, log) = (simulation.loop.remote.executor(), Log<Int>())
            let counter = Counter(on: home)
            simulation.loop.task { log.append(try await counter.work()) }
            #expect(simulation.runUntilIdle() == .done)
            #expect(log.entries == [7])
            #expect(simulation.now == seconds(2) && simulation.escapes.isEmpty)
        }
    }

    @Test("in the body of a thread's loop, and in a task that prefers the loop")
    func preferring() async throws {
        let sum = try await withLoop { loop in
            let record = Record()
            return try await loop.withTimeout(.seconds(9)) { try await elsewhere(loop, record) }
        }
        #expect(sum == 1)
    }
}
