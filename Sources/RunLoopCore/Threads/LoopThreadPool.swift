/// Threads that call the handlers of timer sources, each on any free thread: the counterpart of Dispatch's global
/// queue.
///
/// One more thread, the timekeeper, waits for the deadlines and calls no handler, so that a source is punctual as long
/// as the pool has a free thread. The other threads start when they are needed. When all are busy, or the system has no
/// room for a further one, deliveries wait in order, and waiting fires of one source are merged into one. Without room
/// for the first, the process ends as with a ``LoopThread``.
///
/// A source keeps its pool. The release of the last reference to a pool ends its threads; ``stop()`` ends them even
/// while there are sources, which then no longer fire. A pool that is made inside a simulation takes part in its
/// virtual time. Pools are `Sendable`.
public final class LoopThreadPool: Sendable {
    /// The name under which the threads are numbered: `background-1`, `background-2`.
    public let name: String

    /// The greatest number of threads that call handlers at the same time.
    public let maximumThreads: Int

    let timekeeper: LoopThread
    private let state = Locked(State())

    private struct State: ~Copyable {
        var workers: [Worker] = []
        var waiting = FIFO<Job>()
        var isStopped = false
    }

    typealias Job = @Sendable (RunLoop) -> Void

    private struct Worker {
        let thread: LoopThread
        var isBusy = true
    }

    package init(name: String, maximumThreads: Int, in world: any World) {
        require(maximumThreads > 0, "a pool needs at least one thread; without any, use a loop's queue")
        self.name = name
        self.maximumThreads = maximumThreads
        timekeeper = LoopThread(name: "\(name)-timer", in: world, isService: true, setUp: Self.live)
    }

    /// Creates a pool whose threads live in `world`, with its first thread, so that it can deliver even if the system
    /// refuses further ones.
    package init(starting name: String, maximumThreads: Int, in world: any World) throws(RunLoop.StartError) {
        self.name = name
        self.maximumThreads = maximumThreads
        timekeeper = try LoopThread(starting: "\(name)-timer", in: world, isService: true, setUp: Self.live)
        do {
            let first = try LoopThread(starting: "\(name)-1", in: world, isService: true, setUp: Self.serve)
            state.withLock { $0.workers = [Worker(thread: first, isBusy: false)] }
        } catch {
            timekeeper.stop()
            throw error
        }
    }

    deinit {
        stop()
    }

    /// Asks the threads to end, each after its present handler. Nothing is delivered after that. Returns at once. Any
    /// thread.
    public func stop() {
        var dropped = FIFO<Job>()
        let workers = state.withLock { state in
            state.isStopped = true
            swap(&state.waiting, &dropped)
            return state.workers
        }
        for worker in workers { worker.thread.stop() }
        timekeeper.stop()
    }

    /// Waits until the threads have ended. Any thread but the pool's; harmless when repeated.
    public func join() {
        timekeeper.join()
        for worker in state.withLock({ $0.workers }) { worker.thread.join() }
    }

    /// Suspends the task until the threads have ended, each as by ``LoopThread/ended()``. Cancelling the task does not
    /// end the wait; ``stop()`` does. Any thread.
    public nonisolated(nonsending) func ended() async {
        await timekeeper.ended()
        for worker in state.withLock({ $0.workers }) { await worker.thread.ended() }
    }

    /// Runs `job` on a free thread, or the next one that becomes free. On the timekeeper's thread.
    func submit(from loop: RunLoop, _ job: @escaping Job) {
        let worker = state.withLock { state -> Int? in
            guard !state.isStopped else { return nil }
            if let free = state.workers.firstIndex(where: { !$0.isBusy }) {
                state.workers[free].isBusy = true
                return free
            }
            guard state.workers.count < maximumThreads else {
                state.waiting.append(job)
                return nil
            }
            let name = "\(name)-\(state.workers.count + 1)"
            do throws(RunLoop.StartError) {
                let thread = try LoopThread(starting: name, in: loop.world, isService: true, setUp: Self.serve)
                state.workers.append(Worker(thread: thread))
                return state.workers.count - 1
            } catch {
                guard !state.workers.isEmpty else { endProcess(error) }
                state.waiting.append(job)
                return nil
            }
        }
        if let worker { order(worker, to: job) }
    }

    private static func live(_ loop: RunLoop) {
        loop.add(CustomSource(), forMode: .default)
    }

    /// Runs the loop of a worker until the pool ends it; a handler that stops the loop does not end the thread.
    private static func serve(_ loop: RunLoop) {
        live(loop)
        while loop.run(in: .default) == .stopped && !loop.isEnding {}
    }

    private func order(_ worker: Int, to job: @escaping Job) {
        state.withLock { $0.workers[worker].thread }.remote.perform(inModes: .default) { loop in
            job(loop)
            self.finish(worker)
        }
    }

    /// Notes that a worker's handler has returned, and starts its next job.
    private func finish(_ worker: Int) {
        let next = state.withLock { state in
            assert(state.workers[worker].isBusy, "a thread that rests has finished a job")
            assert(state.workers.count <= maximumThreads, "a pool has too many threads")
            let next = state.waiting.popFirst()
            state.workers[worker].isBusy = next != nil
            return next
        }
        if let next { order(worker, to: next) }
    }
}
