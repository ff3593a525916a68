internal import CShims
internal import Glibc

/// A thread that runs a loop of its own.
///
/// The thread calls its set-up with the loop, runs the loop in the default mode until it is stopped or nothing is left
/// in it, and ends. The end of the loop invalidates everything scheduled in it; handlers, targets and their captures
/// are released on the thread, before ``join()`` returns.
///
/// ```swift
/// let thread = LoopThread(name: "ticker") { loop in
///     loop.add(Timer(timeInterval: .seconds(1), repeats: true) { _ in … }, forMode: .default)
/// }
/// thread.remote.perform { loop in … }
/// thread.stop()
/// thread.join()
/// ```
///
/// Releasing a `LoopThread` does not end its thread. A thread that is started inside a simulation takes part in its
/// virtual time. If the system has no thread or descriptor left, the process ends with a ``RunLoop/StartError`` on
/// standard error and the status 71. The object is `Sendable`.
public final class LoopThread: Sendable {
    /// The thread's name. The system keeps its first 15 bytes.
    public let name: String

    /// A handle by which other threads send requests to the thread's loop. Valid from the start.
    public let remote: RunLoop.Remote

    private let seat: any Seat
    private let handle: ThreadHandle
    private let end = ThreadEnd()

    /// The parameters of the thread, released when it has ended.
    private struct Start {
        let seat: any Seat
        let remote: RunLoop.Remote
        let name: String
        let end: ThreadEnd
        var setUp: (@Sendable (RunLoop) -> Void)?

        mutating func run() {
            rlk_set_thread_name(name)
            do {
                let loop = RunLoop(driver: seat.take(), world: seat.world, remote: remote)
                RunLoop.install(loop)
                RunLoop.preparations[seat.world](loop)
                setUp?(loop)
                // In an explored simulation, other threads may have their turn now, as after a handler.
                loop.schedule?.callEnded()
                var isClosed = false
                repeat {
                    runOnce(loop)
                    isClosed = remote.mailbox.closeIfEmpty()
                } while !isClosed && !loop.isEnding
                // Others may post faster than the loop runs, so a thread that is to end takes only the mail that has
                // come.
                if !isClosed {
                    loop.openMail(closing: true)
                    runOnce(loop)
                }
                setUp = nil
                // Before the loop is uninstalled, so that deinits that use a queue or start a thread stay in its world.
                loop.tearDown()
                RunLoop.install(nil)
            }
            // While it is still this thread's turn: in a simulation the order is the same in every run.
            end.hasCome()
            seat.leave()
        }

        private func runOnce(_ loop: RunLoop) {
            loop.run(in: .default)
            // A nested run in another mode may have taken in the stop, and blocks that were posted before it: they all
            // run in the one pass of a stopped run.
            loop.runs.isStopPending = loop.hasBlocks(for: .default)
            if loop.runs.isStopPending { loop.run(in: .default) }
        }
    }

    /// Starts a thread in `world`, or ends the process. A service only serves others; see
    /// ``World/makeSeat(named:isService:)``.
    @_spi(Ports) public convenience init(
        name: String, in world: any World, isService: Bool = false, setUp: @escaping @Sendable (RunLoop) -> Void
    ) {
        do {
            try self.init(starting: name, in: world, isService: isService, setUp: setUp)
        } catch {
            endProcess(error)
        }
    }

    /// Starts a thread in `world`, or throws if the system refuses a descriptor or the thread.
    @_spi(Ports) public convenience init(
        starting name: String, in world: any World, isService: Bool = false,
        setUp: @escaping @Sendable (RunLoop) -> Void
    ) throws(RunLoop.StartError) {
        try self.init(name: name, at: world.makeSeat(named: name, isService: isService), setUp: setUp)
    }

    /// Starts a thread at a seat that its world has made. Throws if the system refuses the thread.
    @_spi(Ports) public init(
        name: String, at seat: any Seat, setUp: @escaping @Sendable (RunLoop) -> Void
    ) throws(RunLoop.StartError) {
        self.name = name
        self.seat = seat
        remote = RunLoop.Remote(waker: seat.waker, name: name)
        // Unsafe: C passes the pointer to the thread, which moves the parameters out.
        let start = UnsafeMutablePointer<Start>.allocate(capacity: 1)
        start.initialize(to: Start(seat: seat, remote: remote, name: name, end: end, setUp: setUp))
        var thread = pthread_t()
        let status = rlk_start_thread(
            &thread,
            { context in
                let memory = context!.assumingMemoryBound(to: Start.self)
                var start = memory.move()
                memory.deallocate()
                start.run()
                return nil
            }, start)
        guard status == 0 else {
            start.deinitialize(count: 1)
            start.deallocate()
            let error = RunLoop.StartError("start the thread \(quoted(name))", errno: status)
            // The other threads would wait for this one's turn.
            if seat.world.isRepeatable { endProcess(error) }
            throw error
        }
        handle = ThreadHandle(thread)
        seat.wasTaken(by: handle)
    }

    /// Asks the thread to end. Every run of its loop ends at the end of its pass, nested ones too, and a run that
    /// begins later makes a single pass. Blocks posted before the stop still run; posts after that pass are refused, so
    /// that the thread ends however fast others post. Returns at once. Any thread.
    public func stop() {
        if remote.isCurrent {
            RunLoop.installed?.endAllRuns()
        } else {
            _ = remote.mailbox.post(.urgent { $0.endAllRuns() })
        }
    }

    /// Waits until the thread has ended and everything in its loop has been released. Any thread but its own; harmless
    /// when repeated. Blocks the caller, for ever if the thread is never stopped and never ends by itself. On virtual
    /// time threads that join one another in a circle end the process, with a sentence that names them.
    public func join() {
        require(!remote.isCurrent, "a thread cannot wait for its own end; return from its set-up instead, or stop it")
        // Not under the lock: in a simulation the thread needs its turn in order to end.
        seat.join()
        handle.join()
    }

    /// Suspends the task until the thread has ended. No thread is blocked, except for the moment in which the system
    /// releases the ended thread's local memory. Cancelling the task does not end the wait; ``stop()`` does. Any thread.
    public nonisolated(nonsending) func ended() async {
        await JobGate(end).pass()
        // A simulation joins its threads itself, and a replayed thread may need its turn to leave.
        if !seat.world.isRepeatable { handle.join() }
    }
}

/// The end of a thread: an executor that keeps the jobs of the tasks that wait for it until then.
private final class ThreadEnd: SerialExecutor {
    /// The waiting jobs; `nil` when the thread has ended.
    private let waiting = Locked<[UnownedJob]?>([])

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let hasCome = waiting.withLock { waiting in
            waiting?.append(job)
            return waiting == nil
        }
        if hasCome { job.runSynchronously(on: asUnownedSerialExecutor()) }
    }

    func hasCome() {
        for job in waiting.withLock({ $0.take() }) ?? [] { job.runSynchronously(on: asUnownedSerialExecutor()) }
    }
}
