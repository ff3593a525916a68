#if Adapters
// SwiftNIO has its queues in the signature of a requirement.
public import Dispatch
internal import Glibc
public import NIOCore
internal import RunLoopCore
public import RunLoopKit
internal import Synchronization

/// A run loop as an event loop of SwiftNIO.
///
/// Tasks, timers and channels of the event loop are served while the run loop runs in its modes. Nothing runs on another
/// thread. `Sendable`; as for other event loops, most functions may be called on any thread.
///
/// If the run loop ends, its channels close, the tasks that were submitted still run, and scheduled tasks fail with
/// `EventLoopError.shutdown`. Whatever is submitted afterwards fails in the same way.
///
/// Follows the behaviour of SwiftNIO's `SelectableEventLoop`.
public final class RunLoopEventLoop: EventLoop {
    /// The modes in which the tasks, timers and channels are served.
    public let modes: RunLoop.Modes

    /// Requests that any thread may send to the run loop.
    public let remote: RunLoop.Remote

    typealias Work = () -> Void

    // Unsafe: the tasks, the ends, whether a run is posted, the buffers and the group are used on the loop's thread only.
    private nonisolated(unsafe) var tasks = CircularBuffer<Work>()
    private nonisolated(unsafe) var hasPostedRun = false
    /// What the end of the loop has to close, by its identity.
    private nonisolated(unsafe) var ends: [ObjectIdentifier: (number: Int, body: Work)] = [:]
    private nonisolated(unsafe) var endsMade = 0
    nonisolated(unsafe) let readBuffers = ReadBuffers()
    nonisolated(unsafe) let flushGroup = FlushGroup()
    /// The tasks of other threads, until the loop takes them; `nil` once the loop has ended.
    private let posted = Locked<[@Sendable () -> Void]?>([])
    /// The thread on which the loop has begun to end; 0 until then.
    private let endingThread = Atomic<UInt>(0)

    /// The time of `NIODeadline.now()` when the run loop's clock is at zero.
    private let clockStart: Duration

    /// The most tasks that run before timers and channels have their turn.
    private static let batch = 4096

    init(_ loop: RunLoop, modes: RunLoop.Modes) {
        self.modes = modes
        remote = loop.remote
        clockStart = loop.world.monotonicStart
    }

    /// Whether the calling thread is the one of the run loop. Any thread; O(1).
    public var inEventLoop: Bool { remote.isCurrent || isEndingHere }

    private var isEndingHere: Bool {
        let thread = endingThread.load(ordering: .relaxed)
        return thread != 0 && thread == UInt(pthread_self())
    }

    /// The time on the run loop's clock, as `NIODeadline.now()` tells it. In a simulation it is virtual, and begins an hour
    /// in: a time near zero is less than some handlers subtract from it. Any thread.
    public var now: NIODeadline { .uptimeNanoseconds(UInt64(clamping: (remote.now + clockStart).nanoseconds)) }

    /// A deadline of SwiftNIO's, on the run loop's clock.
    fileprivate func instant(of deadline: NIODeadline) -> RunLoop.Instant {
        RunLoop.Instant(nanoseconds: Int64(clamping: deadline.uptimeNanoseconds)) - clockStart
    }

    /// The run loop, on its thread and before its end.
    var loop: RunLoop? { isEndingHere ? nil : remote.installed }

    // MARK: Tasks

    @preconcurrency
    public func execute(_ task: @escaping @Sendable () -> Void) {
        if inEventLoop { return executeHere(task) }
        if remote.keepsOrder, remote.perform(inModes: modes, { _ in task() }) { return }
        let isFirst = posted.withLock { posted -> Bool in
            posted?.append(task)
            return posted?.count == 1
        }
        guard isFirst else { return }
        remote.perform(inModes: modes) { _ in self.runPosted() }
    }

    @preconcurrency
    public func _executeIsolatedUnsafeUnchecked(_ task: @escaping () -> Void) {
        preconditionInEventLoop()
        executeHere(task)
    }

    private func executeHere(_ task: @escaping Work) {
        tasks.append(task)
        guard !hasPostedRun else { return }
        hasPostedRun = true
        if let loop {
            loop.perform(inModes: modes) { self.runTasks() }
        } else {
            while !tasks.isEmpty { tasks.removeFirst()() }
            hasPostedRun = false
        }
    }

    private func runTasks() {
        // A task may run the loop, whose tasks must not wait for it.
        hasPostedRun = false
        // Handlers have flushed that before they submitted the tasks.
        flushGroup.send()
        for _ in 0..<Self.batch {
            guard let task = tasks.popFirst() else { return }
            task()
        }
        guard !tasks.isEmpty, !hasPostedRun else { return }
        hasPostedRun = true
        loop?.perform(inModes: modes) { self.runTasks() }
    }

    private func runPosted() {
        let taken = posted.withLock { posted in
            defer { if posted != nil { posted = [] } }
            return posted ?? []
        }
        for task in taken { task() }
    }

    @preconcurrency
    public func submit<Value>(_ task: @escaping @Sendable () throws -> Value) -> EventLoopFuture<Value> {
        let submission = ScheduledTask(self, task)
        execute { submission.run() }
        return submission.promise.futureResult
    }

    // MARK: Timers

    @discardableResult
    @preconcurrency
    public func scheduleTask<Value>(
        deadline: NIODeadline, _ task: @escaping @Sendable () throws -> Value
    ) -> Scheduled<Value> {
        let scheduled = ScheduledTask(self, task)
        onLoop { scheduled.schedule(at: deadline) }
        return Scheduled(promise: scheduled.promise) { self.onLoop { scheduled.cancel() } }
    }

    @discardableResult
    @preconcurrency
    public func scheduleTask<Value>(
        in delay: TimeAmount, _ task: @escaping @Sendable () throws -> Value
    ) -> Scheduled<Value> {
        scheduleTask(deadline: now + delay, task)
    }

    @discardableResult
    @preconcurrency
    public func scheduleCallback(
        in delay: TimeAmount, handler: some (NIOScheduledCallbackHandler & Sendable)
    ) -> NIOScheduledCallback {
        scheduleCallback(at: now + delay, handler: handler)
    }

    /// Runs a task on the loop's thread, at once if that is the calling one.
    func onLoop(_ task: @escaping @Sendable () -> Void) {
        if inEventLoop { task() } else { execute(task) }
    }

    // MARK: Swift concurrency

    /// The executor of the run loop for the same modes: actors of this event loop and of the run loop's are called
    /// without a hop.
    public var executor: any SerialExecutor { remote.executor(inModes: modes).serial }

    /// The executor for the preference of a task, which then runs where the channels of this event loop live.
    public var taskExecutor: any TaskExecutor { remote.executor(inModes: modes).task }

    public func enqueue(_ job: consuming ExecutorJob) {
        executor.enqueue(job)
    }

    // MARK: The end

    /// Has a function called at the end of the loop, unless the object is forgotten before. On the loop's thread.
    func atEnd(of object: AnyObject, _ body: @escaping () -> Void) {
        endsMade += 1
        ends[ObjectIdentifier(object)] = (endsMade, body)
    }

    func forget(_ object: AnyObject) {
        ends[ObjectIdentifier(object)] = nil
    }

    /// Ends if the run loop has ended, of which an item has heard first; `false` if the run loop lives.
    func endsWithLoop() -> Bool {
        guard loop?.hasEnded != false else { return false }
        end()
        return true
    }

    /// Closes everything, runs the submitted tasks, and takes nothing more. Called on the loop's thread, once it ends.
    func end() {
        guard endingThread.load(ordering: .relaxed) == 0 else { return }
        endingThread.store(UInt(pthread_self()), ordering: .relaxed)
        hasPostedRun = false
        // The oldest first, so that a simulation ends the same each time.
        while let (object, end) = ends.min(by: { $0.value.number < $1.value.number }) {
            ends[object] = nil
            end.body()
        }
        let last = posted.withLock { posted in posted.take() ?? [] }
        for task in last { executeHere(task) }
        executeHere {}
    }

    /// Fails: the run loop belongs to its thread, or to its `LoopGroup`, which ends it.
    public func shutdownGracefully(queue: DispatchQueue, _ callback: @escaping @Sendable ((any Error)?) -> Void) {
        queue.async { callback(EventLoopError.unsupportedOperation) }
    }

    @preconcurrency
    public func _preconditionSafeToSyncShutdown(file: StaticString, line: UInt) {
        preconditionNotInEventLoop(file: file, line: line)
    }

    public func preconditionInEventLoop(file: StaticString, line: UInt) {
        precondition(inEventLoop, "this belongs to \(remote), and was called on another thread", file: file, line: line)
    }

    public func preconditionNotInEventLoop(file: StaticString, line: UInt) {
        precondition(!inEventLoop, "this waits for \(remote), and was called on its thread", file: file, line: line)
    }
}

/// A task with a promise, which fails if the task is released without having run.
// Unchecked: the call and the body are used on the loop's thread only.
private final class ScheduledTask<Value>: @unchecked Sendable {
    let promise: EventLoopPromise<Value>
    private let eventLoop: RunLoopEventLoop
    private var body: (@Sendable () throws -> Value)?
    private var call: DelayedCall?

    init(_ eventLoop: RunLoopEventLoop, _ body: @escaping @Sendable () throws -> Value) {
        promise = eventLoop.makePromise()
        (self.eventLoop, self.body) = (eventLoop, body)
    }

    deinit {
        if body != nil { promise.fail(EventLoopError.shutdown) }
    }

    func schedule(at deadline: NIODeadline) {
        guard body != nil else { return }
        call = eventLoop.loop?.perform(at: eventLoop.instant(of: deadline), inModes: eventLoop.modes) { self.isDue() }
    }

    /// Channels first read what this pass has found, as SwiftNIO's do after a sleep: the handler of a time-out may then see
    /// that it is none.
    private func isDue() {
        if eventLoop.loop?.hasReadyDescriptors == true {
            eventLoop._executeIsolatedUnsafeUnchecked { self.run() }
        } else {
            run()
        }
    }

    func run() {
        guard let body = body.take() else { return }
        do {
            promise.assumeIsolatedUnsafeUnchecked().succeed(try body())
        } catch {
            promise.fail(error)
        }
    }

    /// The promise has failed already.
    func cancel() {
        body = nil
        call?.cancel()
    }
}
#endif
