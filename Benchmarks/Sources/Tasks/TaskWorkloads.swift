import Harness
import Synchronization

/// The workloads of Swift concurrency, the same for every peer that is an executor.
public struct TaskWorkloads: Sendable {
    public typealias Sleep = nonisolated(nonsending) @Sendable (_ nanoseconds: UInt64) async -> Void
    private typealias Work = nonisolated(nonsending) @Sendable () async -> Void

    private let home: Home
    private let other: Home?
    private let sleep: Sleep?

    /// - Parameters:
    ///   - home: the home of all tasks and actors.
    ///   - other: a home on another thread.
    ///   - sleep: lets a task of the home sleep.
    public init(home: Home, other: Home? = nil, sleep: Sleep? = nil) {
        self.home = home
        self.other = other
        self.sleep = sleep
    }

    /// Starts a workload, which stops the peer's loop in the end.
    ///
    /// - Returns: `false` if the peer does not support it.
    public func start(_ name: UnsafePointer<CChar>!, _ size: Int, _ delays: UnsafePointer<UInt64>!) -> Bool {
        guard let work = work(String(cString: name), size, delays) else { return false }
        Task { [home] in
            await work()
            await home.run { stop_loop() }
        }
        return true
    }

    private func work(_ name: String, _ size: Int, _ delays: UnsafePointer<UInt64>) -> Work? {
        switch name {
        case "yield": atHome { await measure(size) { for _ in 0..<$0 { await Task.yield() } } }
        case "preferring" where home.hasFreeTasks: atHome(visits(size))
        case "actors": calls(size)
        case "actors-preferring" where home.task != nil: atHome(calls(size))
        case "hop": other.flatMap { hops(to: $0, size) }
        case "sleeps": sleep.map { atHome(sleeps(size, delays, $0)) }
        default: nil
        }
    }

    private func atHome(_ work: @escaping Work) -> Work {
        { [home] in await home.run(work) }
    }

    /// Visits actors from a task that is isolated to no actor.
    private func visits(_ size: Int) -> Work {
        func visits(to callee: some Callee) -> Work {
            { await measure(size) { await visit(callee, times: $0) } }
        }
        return home.serial.map { visits(to: LoopActor($0)) } ?? visits(to: DefaultActor())
    }

    private func calls(_ size: Int) -> Work {
        home.serial.map { calls(from: LoopActor($0), to: LoopActor($0), size) }
            ?? calls(from: DefaultActor(), to: DefaultActor(), size)
    }

    private func hops(to other: Home, _ size: Int) -> Work? {
        home.serial.map { serial in
            other.serial.map { calls(from: LoopActor(serial), to: LoopActor($0), size) }
                ?? calls(from: LoopActor(serial), to: DefaultActor(), size)
        }
    }

    private func calls(from caller: some Callee, to callee: some Callee, _ size: Int) -> Work {
        {
            await caller.moveThreads(of: callee)
            await measure(size) { await caller.call(callee, times: $0) }
        }
    }

    private func sleeps(_ size: Int, _ delays: UnsafePointer<UInt64>, _ sleep: @escaping Sleep) -> Work {
        nonisolated(unsafe) let delays = delays
        return { [home] in
            // The yardstick: as many tasks that wait forever.
            let beginning = now_ns(), bytes = resident_bytes()
            await home.startAll(size) { _, begun in
                await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in begun.arrive() }
            }
            let suspendedBytes = resident_bytes() - bytes

            let start = now_ns(), cpu = cpu_ns()
            // All of them are asleep before the first is due.
            let lead = 1_000_000_000 + 4 * (start - beginning)
            let ended = Countdown(size)
            await home.startAll(size) { number, begun in
                let deadline = start + lead + delays[number], now = now_ns()
                begun.arrive()
                await sleep(deadline - min(now, deadline))
                if now_ns() < deadline { give_up("woke up early") }
                ended.arrive()
            }
            if now_ns() > start + lead { give_up("starting took longer than the first sleep") }
            let sleepingBytes = resident_bytes() - bytes - suspendedBytes
            let startCPU = cpu_ns() - cpu, switches = context_switches()
            await ended.wait()

            func emit(_ metric: String, _ sum: UInt64, _ unit: String) {
                harness_emit(metric, Double(Int64(bitPattern: sum)) / Double(size), unit)
            }
            emit("memory_suspended", suspendedBytes, "B")
            emit("memory", sleepingBytes &- suspendedBytes, "B")
            emit("cpu_start", startCPU, "ns")
            emit("cpu_end", cpu_ns() - cpu - startCPU, "ns")
            harness_emit("switches", Double(context_switches() - switches), "")
        }
    }
}

/// Measures the median of nine rounds.
private nonisolated(nonsending) func measure(
    _ size: Int, _ round: nonisolated(nonsending) (_ times: Int) async -> Void
) async {
    var times: [Int64] = []
    for _ in 0..<9 {
        let begin = now_ns()
        await round(size)
        times.append(Int64(now_ns() - begin) * 1000 / Int64(size))
    }
    harness_emit("each", median(&times, times.count) / 1000, "ns")
}

@concurrent private func visit(_ callee: some Callee, times: Int) async {
    for number in 0..<times {
        await callee.call()
        // Otherwise it would not need to come back.
        observe(number)
    }
}

private nonisolated(unsafe) var observed = 0
@inline(never) private func observe(_ number: Int) { observed &+= number }

extension Home {
    /// Performs work in a task that lives here.
    fileprivate func run(_ work: nonisolated(nonsending) @escaping @Sendable () async -> Void) async {
        let ended = Countdown(1)
        await start(0..<1) { _ in
            await work()
            ended.arrive()
        }
        await ended.wait()
    }

    /// Starts tasks that live here, a thousand at a time, and returns when all have arrived.
    fileprivate func startAll(
        _ size: Int, _ life: nonisolated(nonsending) @escaping @Sendable (Int, Countdown) async -> Void
    ) async {
        for first in stride(from: 0, to: size, by: 1000) {
            let numbers = first..<min(first + 1000, size)
            let begun = Countdown(numbers.count)
            await start(numbers) { await life($0, begun) }
            await begun.wait()
        }
    }
}

/// Lets one task wait until others have arrived.
private final class Countdown: Sendable {
    private let missing: Atomic<Int>
    private let (arrivals, last) = AsyncStream<Never>.makeStream()

    init(_ count: Int) {
        missing = Atomic(count)
    }

    func arrive() {
        if missing.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { last.finish() }
    }

    func wait() async {
        for await _ in arrivals {}
    }
}
