import Harness

// The harness has tasks of its own.
typealias Task = _Concurrency.Task

/// The home of a peer's tasks and actors.
public struct Home: Sendable {
    let serial: UnownedSerialExecutor?
    let task: (any TaskExecutor)?

    /// - Parameters:
    ///   - serial: the actors' executor; by default Swift's default executor.
    ///   - task: the tasks' preferred executor. With `serial` alone, a task is isolated to an actor.
    public init(serial: UnownedSerialExecutor? = nil, task: (any TaskExecutor)? = nil) {
        self.serial = serial
        self.task = task
    }

    /// `true` if a task lives here without being isolated to an actor.
    var hasFreeTasks: Bool { task != nil || serial == nil }

    /// Starts a task for each number.
    func start(_ numbers: Range<Int>, _ life: nonisolated(nonsending) @escaping @Sendable (Int) async -> Void) async {
        if !hasFreeTasks, let serial {
            await LoopActor(serial).start(numbers, life)
        } else {
            for number in numbers { Task(executorPreference: task) { await life(number) } }
        }
    }
}

/// An actor that others call.
protocol Callee: Actor {
    func call()
}

extension Callee {
    func call(_ other: some Callee, times: Int) async {
        for _ in 0..<times {
            await other.call()
            // Otherwise the actor would not need to come back.
            call()
        }
    }

    /// Places the threads of the other home where the harness wants threads other than the loop's.
    func moveThreads(of other: some Callee) async {
        // A pool has several.
        for _ in 0..<1000 { await other.moveThread() }
    }

    private func moveThread() { place_other_thread() }
}

actor DefaultActor: Callee {
    private var calls = 0

    func call() { calls &+= 1 }
}

actor LoopActor: Callee {
    nonisolated let unownedExecutor: UnownedSerialExecutor
    private var calls = 0

    init(_ executor: UnownedSerialExecutor) {
        unownedExecutor = executor
    }

    func call() { calls &+= 1 }

    func start(_ numbers: Range<Int>, _ life: nonisolated(nonsending) @escaping @Sendable (Int) async -> Void) {
        for number in numbers {
            Task {
                // Isolates the task to this actor.
                call()
                await life(number)
            }
        }
    }
}
