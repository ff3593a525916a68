internal import CShims

/// The tasks that await the value of another one, from the queue that Swift's runtime keeps in that task's memory.
///
/// No interface describes the queue, and its place is not taken for granted: an experiment finds it, in which two tasks
/// await a third. If the experiment is inconclusive, as with another runtime, no awaiters are known.
enum ValueAwaiters {
    /// Returns the tasks that await the value of `task`, the latest first.
    ///
    /// Call it on the thread where the task would end, and before it has: its awaiters are at rest then, because
    /// nothing else resumes them, and so their memory may be read.
    static func of(_ task: UnownedJob) -> [UnownedJob] {
        guard let places else { return [] }
        var found: [UnownedJob] = []
        // The two lowest bits are set when the task has ended.
        var next = word(places.queue, of: task.address)
        while next != 0, next & 3 == 0, found.count < limit {
            found.append(unsafeBitCast(next, to: UnownedJob.self))
            next = word(places.link, of: next)
        }
        return found
    }

    /// The greatest length of a list that is followed.
    private static let limit = 10_000

    /// The places of a task's first awaiter, and of an awaiter's next one, in words from the start of the task.
    private static let places: (queue: Int, link: Int)? = {
        let jobs = CollectedJobs()
        let awaited = Task<Void, any Error>(executorPreference: jobs) {}
        let first = Task<Void, any Error>(executorPreference: jobs) { try await awaited.value }
        let second = Task<Void, any Error>(executorPreference: jobs) { try await awaited.value }
        defer { jobs.runAll() }
        guard let awaitedJob = jobs.next(), let firstJob = jobs.next(), let secondJob = jobs.next() else { return nil }
        defer { jobs.run(awaitedJob) }
        let before = words(of: awaited.job)
        jobs.run(firstJob)
        let between = words(of: awaited.job)
        jobs.run(secondJob)
        let after = words(of: awaited.job)
        let (one, two) = (first.job.address, second.job.address)
        let queues = before.indices.filter { (before[$0], between[$0], after[$0]) == (0, one, two) }
        // One of the tasks may have more room than the other.
        let links = zip(words(of: first.job), words(of: second.job)).enumerated()
            .filter { $0.element == (0, one) }.map(\.offset)
        guard let queue = queues.first, let link = links.first, queues.count == 1, links.count == 1 else { return nil }
        return (queue, link)
    }()

    /// Returns the first words of a task of the experiment. The runtime allocates each such task by itself; with
    /// AddressSanitizer it has 36 words.
    private static func words(of task: UnownedJob) -> [UInt] {
        let size = rlk_allocated_size(UnsafeRawPointer(bitPattern: task.address)!) / MemoryLayout<UInt>.size
        return (0..<min(64, size)).map { word($0, of: task.address) }
    }

    // Unsafe, because Swift has no name for that memory.
    private static func word(_ index: Int, of address: UInt) -> UInt {
        UnsafePointer<UInt>(bitPattern: address)![index]
    }
}

/// Keeps jobs until they are taken.
private final class CollectedJobs: TaskExecutor {
    private let jobs = Locked<[UnownedJob]>([])

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
    }

    func next() -> UnownedJob? { jobs.withLock { $0.isEmpty ? nil : $0.removeFirst() } }

    func run(_ job: UnownedJob) { job.runSynchronously(on: asUnownedTaskExecutor()) }

    func runAll() {
        while let job = next() { run(job) }
    }
}
