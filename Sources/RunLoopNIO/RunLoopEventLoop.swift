#if Adapters
// Dispatch queues are in the signature of one of SwiftNIO's requirements.
public import Dispatch
internal import Glibc
public import NIOCore
@_spi(Ports) internal import RunLoopCore
public import RunLoopKit
internal import Synchronization

/// A run loop as a SwiftNIO event loop.
///
/// Tasks, timers and channels of the event loop are served while the run loop runs in its modes, on its thread alone.
/// `Sendable`; as with other event loops, most functions may be called on any thread.
///
/// When the run loop ends, its channels close, submitted tasks still run, and scheduled tasks fail with
/// `EventLoopError.shutdown`, as do all tasks submitted afterwards.
///
/// Follows the behaviour of SwiftNIO's `SelectableEventLoop`.
public final class RunLoopEventLoop: EventLoop {
    /// The modes in which the tasks, timers and channels are served.
    public let modes: RunLoop.Modes

    /// The run loop's remote, through which any thread may send requests.
    public let remote: RunLoop.Remote

    typealias Work = () -> Void

    // Unsafe: these properties are used on the loop's thread only.
    private nonisolated(unsafe) var tasks = CircularBuffer<Work>()
    private nonisolated(unsafe) var hasPostedRun = false
    /// The closures to call when the loop ends, by the identities of their objects.
    private nonisolated(unsafe) var ends: [ObjectIdentifier: (number: Int, body: Work)] = [:]
    private nonisolated(unsafe) var endsMade = 0
    nonisolated(unsafe) let readBuffers = ReadBuffers()
    nonisolated(unsafe) let flushGroup = FlushGroup()
    /// The tasks that other threads have posted and the loop has not taken; `nil` once the loop has ended.
    private let posted = Locked<[@Sendable () -> Void]?>([])
    /// The thread on which the loop has begun to end; 0 until then.
    private let endingThread = Atomic<UInt>(0)

    /// The time of `NIODeadline.now()` when the run loop's clock is at zero.
    private let clockStart: Duration

    /// The maximum number of tasks that run before timers and channels have their turn.
    private static let batch = 4096

    init(_ loop: RunLoop, modes: RunLoop.Modes) {
        self.modes = modes
        remote = loop.remote
        clockStart = loop.world.monotonicStart
    }

    /// A Boolean value that indicates whether the calling thread is the run loop's. Any thread; O(1).
    public var inEventLoop: Bool { remote.isCurrent || isEndingHere }

    private var isEndingHere: Bool {
        let thread = endingThread.load(ordering: .relaxed)
        return thread != 0 && thread == UInt(pthread_self())
    }

    /// The time on the run loop's clock, on the scale of `NIODeadline.now()`. In a simulation, time is virtual and
    /// begins at one hour, because some handlers subtract more than a time near zero allows. Any thread.
    public var now: NIODeadline { .uptimeNanoseconds(UInt64(clamping: (remote.now + clockStart).nanoseconds)) }

    /// Converts a SwiftNIO deadline to the run loop's clock.
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
        // A task may run the loop, and later tasks must not wait for that task.
        hasPostedRun = false
        // Handlers flushed this output before they submitted the tasks.
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

    /// Runs a task on the loop's thread, at once if the caller is on it.
    func onLoop(_ task: @escaping @Sendable () -> Void) {
        if inEventLoop { task() } else { execute(task) }
    }

    // MARK: Swift concurrency

    /// The run loop's executor for the same modes. Calls between actors of this event loop and of the run loop need no
    /// hop.
    public var executor: any SerialExecutor { remote.executor(inModes: modes).serial }

    /// The executor for a task's preference. The task then runs on the thread of this event loop's channels.
    public var taskExecutor: any TaskExecutor { remote.executor(inModes: modes).task }

    public func enqueue(_ job: consuming ExecutorJob) {
        executor.enqueue(job)
    }

    // MARK: The end

    /// Calls a closure at the end of the loop, unless `forget(_:)` is called first. Called on the loop's thread.
    func atEnd(of object: AnyObject, _ body: @escaping () -> Void) {
        endsMade += 1
        ends[ObjectIdentifier(object)] = (endsMade, body)
    }

    func forget(_ object: AnyObject) {
        ends[ObjectIdentifier(object)] = nil
    }

    /// Ends the event loop if the run loop has ended, which an item noticed first; `false` if the run loop lives.
    func endsWithLoop() -> Bool {
        guard loop?.hasEnded != false else { return false }
        end()
        return true
    }

    /// Closes all channels, runs the submitted tasks, and accepts no more. Called on the loop's thread when it ends.
    func end() {
        guard endingThread.load(ordering: .relaxed) == 0 else { return }
        endingThread.store(UInt(pthread_self()), ordering: .relaxed)
        hasPostedRun = false
        // In the order of creation, so that every run of a simulation ends in the same way.
        while let (object, end) = ends.min(by: { $0.value.number < $1.value.number }) {
            ends[object] = nil
            end.body()
        }
        let last = posted.withLock { posted in posted.take() ?? [] }
        for task in last { executeHere(task) }
        executeHere {}
    }

    /// Fails with `EventLoopError.unsupportedOperation`. The run loop's thread or `LoopGroup` ends it.
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

    /// Runs the task after channels have read the input that this pass found, as SwiftNIO does after a sleep, so that
    /// the handler of a time-out can see input that has just arrived.
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

    /// Releases the body and the call. The promise has already failed.
    func cancel() {
        body = nil
        call?.cancel()
    }
}
#endif
