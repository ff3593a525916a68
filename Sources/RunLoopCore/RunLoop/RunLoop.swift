internal import CShims
internal import Glibc
internal import Synchronization

/// An event loop with modes: it waits for timers, sources and blocks, and calls those of the mode that it runs in.
///
/// A loop belongs to one thread, and so do its timers, sources and observers; none of them is `Sendable`. What other
/// threads may ask of it is its ``remote``. Every method traps when called on another thread than the loop's.
///
/// How a pass goes is written in `RunLoop+Pass.swift`, and explained in <doc:HowAPassRuns>.
public final class RunLoop {
    /// What other threads may ask of this loop. Constant; may be copied to any thread.
    public let remote: Remote

    /// The name of the loop's ``LoopThread``; `nil` on other threads.
    public let name: String?

    /// Called with what the loop does, for traces and for finding out why nothing happens. `nil` costs nothing.
    @exclusivity(unchecked) public var trace: ((TraceEvent) -> Void)?

    /// What the loop has done so far, counted.
    @exclusivity(unchecked) public internal(set) var statistics = Statistics()

    package let driver: any Driver
    /// Tells this loop from every other of the process, also from those that have gone.
    let number = loopCount.wrappingAdd(1, ordering: .relaxed).newValue
    private let thread: pthread_t

    // The state that every pass touches opts out of run-time exclusivity checks: they were 44 % of the instructions of
    // a timer's fire (619 to 345 million for a virtual day of 86,400). It is safe because only the loop's thread gets
    // here, and no access is open while user code is called: what a change lets go is kept by its caller until the
    // change is over.

    // MARK: What is scheduled

    @exclusivity(unchecked) var timers = TimerQueue<TimerClient>()
    @exclusivity(unchecked) var modeStates: [ModeState] = []
    @exclusivity(unchecked) var commonModes = ModeSet(.default)
    var customSources: [ObjectIdentifier: CustomSource] = [:]
    var lastSourceNumber = 0
    /// Custom sources that are marked as ready, in the order in which they were signalled.
    @exclusivity(unchecked) var signalled: [CustomSource] = []
    /// Room for those of them that a step serves.
    @exclusivity(unchecked) var dueSources: [CustomSource] = []
    @exclusivity(unchecked) var descriptors = DescriptorTable()
    var delayedCalls = DelayedCallTable()

    /// What other modules keep for a loop, by its type.
    package var attachments: [ObjectIdentifier: AnyObject] = [:]

    // MARK: What waits to be run

    @exclusivity(unchecked) var blocks = BlockQueue()
    let ready = ReadyQueue()
    /// Where mail is collected. Empty while nobody does, but for the room that it has; a batch of blocks borrows it.
    @exclusivity(unchecked) var mail = Mailbox.Mail()

    /// What the loop does at the moment, while a monitor looks.
    @exclusivity(unchecked) var activity: Activity?

    // MARK: The runs that are under way

    @exclusivity(unchecked) var innermostRun: Activation?
    /// The runs that it is nested in, the outermost first.
    @exclusivity(unchecked) var outerRuns: [Activation] = []
    @exclusivity(unchecked) var lastActivationNumber: UInt64 = 0
    /// A stop from another thread that found no run to end: the next one will take it.
    @exclusivity(unchecked) var isStopPending = false
    /// The loop's thread is to end: no run goes on, and those that begin make one pass.
    @exclusivity(unchecked) var isEnding = false
    /// Nothing is scheduled in it any more.
    private(set) var hasEnded = false
    /// Ends the coming sleep at once (R86).
    @exclusivity(unchecked) var isWakeUpPending = false
    /// The time, if no callback has run since it was read.
    @exclusivity(unchecked) var freshTime: Instant?

    /// What a mode holds besides timers.
    struct ModeState {
        var sourceCount = 0
        var observers: [Observer] = []
        var observedActivities: Observer.Activity = []
    }

    /// One run of the loop.
    struct Activation {
        let mode: Mode
        let limit: Instant
        let isPoll: Bool
        let returnsAfterSource: Bool
        let number: UInt64
        var isStopped = false
    }

    /// A loop of the calling thread.
    package convenience init(driver: any Driver) {
        self.init(driver: driver, remote: Remote(waker: driver.waker))
    }

    /// A loop of the calling thread, with a remote that was handed out before.
    package init(driver: any Driver, remote: Remote, name: String? = nil) {
        self.driver = driver
        isVirtual = driver.isVirtual
        timeOfPass = driver.now
        self.remote = remote
        self.name = name
        thread = pthread_self()
    }

    deinit {
        tearDown()
    }

    /// Ends the loop: whatever is scheduled is let go without being called, but for the cancel handlers of its custom
    /// sources (R6). Posts from other threads are refused from now on.
    package func tearDown() {
        // Among what was asked urgently is to let go of things on this thread, which is where they belong.
        let lastMail = remote.mailbox.close()
        for case .urgent(let block) in lastMail.requests { block(self) }
        hasEnded = true
        let clients = timers.removeAll()
        let kept = clients.map { $0.loopEnded() }
        for client in clients { client.release() }
        withExtendedLifetime(kept) {}
        for source in allCustomSources() { setMembership(.none, of: source) }
        for source in descriptors.all { remove(source) }
        for observer in allObservers() { setMembership(.none, of: observer) }
        modeStates = []
        var droppedBlocks = BlockQueue()
        swap(&droppedBlocks, &blocks)
        let droppedCalls = delayedCalls
        delayedCalls = DelayedCallTable()
        withExtendedLifetime(droppedCalls) {}
    }

    // MARK: Time and state

    /// The time on the loop's clock: the only clock that its timers know. Virtual in a simulation.
    public var now: Instant { driver.now }

    /// The time as the pass under way has read it, after its sleep and before it called anybody; between passes, that of
    /// the last one. Before the first, when the loop was made. On the loop's thread.
    ///
    /// To ask for it costs nothing, while ``now`` reads the clock. A date that is counted from it comes earlier than one
    /// that is counted from `now`, by what the pass has taken until here: right for idle timeouts that are pushed back
    /// with every byte, wrong for what must not be early.
    public var passTime: Instant { timeOfPass }
    @exclusivity(unchecked) var timeOfPass: Instant

    /// Whether that time is virtual.
    public let isVirtual: Bool

    /// Whether the process has been forked since the loop was made: then a loop of the real world is the parent's.
    package var isForked: Bool { forkCount != rlk_fork_count() && !isVirtual }
    private let forkCount = rlk_fork_count()

    /// The mode of the innermost run; `nil` while the loop does not run (R4).
    public var currentMode: Mode? {
        checkThread()
        return innermostRun?.mode
    }

    /// Whether the loop sleeps (R5). On the loop's own thread that is never seen; ask ``remote`` from another.
    public var isWaiting: Bool { remote.isWaiting }

    /// Ends the innermost run, once the step that is under way is done (R29, R82, R83). Nothing happens if the loop
    /// does not run (R38). From another thread: ``Remote/stop()``.
    public func stop() {
        checkThread()
        innermostRun?.isStopped = true
    }

    /// Ends every run that is under way, and lets those that begin make one pass only.
    package func endAllRuns() {
        isEnding = true
        innermostRun?.isStopped = true
        for index in outerRuns.indices { outerRuns[index].isStopped = true }
    }

    /// Makes the coming sleep of this pass end at once (R85–R88). From another thread: ``Remote/wakeUp()``.
    public func wakeUp() {
        checkThread()
        isWakeUpPending = true
    }

    func checkThread() {
        require(
            pthread_self() == thread,
            "a run loop and what is scheduled in it are used on the loop's own thread only; from here use its remote")
    }

    func emit(_ event: TraceEvent) {
        trace?(event)
    }

    /// The time, read only if a callback has run since it was last read.
    @inline(__always)
    func recentTime() -> Instant {
        if let freshTime { return freshTime }
        let now = driver.now
        freshTime = now
        return now
    }

    /// Traps unless the loop's structures agree with one another; for tests.
    package func checkInvariants() {
        timers.checkInvariants()
        descriptors.checkInvariants()
        for state in modeStates {
            let union = state.observers.reduce(into: Observer.Activity()) { $0.formUnion($1.activities) }
            precondition(union == state.observedActivities, "a mode has lost count of what is observed in it")
        }
    }
}

@available(*, unavailable, message: "a run loop belongs to one thread; give other threads its remote")
extension RunLoop: Sendable {}

@available(*, unavailable, message: "a timer belongs to its loop's thread; give other threads its remote")
extension Timer: Sendable {}

@available(*, unavailable, message: "a display link belongs to its loop's thread; give other threads its remote")
extension DisplayLink: Sendable {}

@available(*, unavailable, message: "a source belongs to its loop's thread; give other threads its remote")
extension CustomSource: Sendable {}

@available(*, unavailable, message: "a source belongs to its loop's thread")
extension DescriptorSource: Sendable {}

@available(*, unavailable, message: "an observer belongs to its loop's thread")
extension Observer: Sendable {}

private let loopCount = Atomic<UInt64>(0)
