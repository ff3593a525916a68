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
    /// The name of the loop's ``LoopThread``; `nil` on other threads.
    public let name: String?

    /// Called with what the loop does, for traces and for finding out why nothing happens. `nil` costs nothing.
    @exclusivity(unchecked) public var trace: ((TraceEvent) -> Void)?

    /// What the loop has done so far, counted.
    @exclusivity(unchecked) public internal(set) var statistics = Statistics()

    package let driver: any Driver
    /// The world that it lives in: the real one, or a simulated one.
    package let world: any World
    /// What other threads ask of it.
    let mailbox: Mailbox<RunLoop>
    /// Tells this loop from every other of the process, also from those that have gone.
    let number = loopCount.wrappingAdd(1, ordering: .relaxed).newValue
    private let thread: pthread_t

    // The state that every pass touches opts out of run-time exclusivity checks: they were 44 % of the instructions of
    // a timer's fire (619 to 345 million for a virtual day of 86,400). It is safe because only the loop's thread gets
    // here, and no access is open while user code is called: what a change lets go is kept by its caller until the
    // change is over.

    // MARK: What is scheduled

    @exclusivity(unchecked) var commonModes = ModeSet(.default)
    /// What each mode holds besides what has a deadline, by the mode's id.
    @exclusivity(unchecked) private var modeStates: [ModeState] = []
    /// The same for any other mode: what is in every mode.
    @exclusivity(unchecked) private var otherModes = ModeState()

    @exclusivity(unchecked) var timers = TimerQueue<TimedItem>()
    /// Everything else that is scheduled.
    private var untimedItems: [ObjectIdentifier: UntimedItem] = [:]
    private var lastItemNumber = 0

    @exclusivity(unchecked) var signals = SignalQueue<Source>()
    @exclusivity(unchecked) var descriptors = SlotTable<Source>()
    @exclusivity(unchecked) var parked = ParkedList<Source>()
    /// Whether any descriptor source has had an order of its own.
    @exclusivity(unchecked) var hasOrderedDescriptors = false

    /// What others keep for the loop; see ``Local``.
    var locals = Locals()

    // MARK: What waits to be run

    @exclusivity(unchecked) var blocks = BlockQueue<RunLoop>()
    let ready = ReadyQueue()
    /// Where mail is collected. Empty while nobody does, but for the room that it has.
    @exclusivity(unchecked) var mail = Mailbox<RunLoop>.Mail()

    /// What the loop calls at the moment, while a monitor looks.
    @exclusivity(unchecked) var record: DispatchRecord?

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
    /// Ends the coming sleep at once.
    @exclusivity(unchecked) var isWakeUpPending = false
    /// The time, if no callback has run since it was read.
    @exclusivity(unchecked) var freshTime: Instant?

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
    ///
    /// - Parameter mailbox: one that was handed out before, if any.
    init(driver: any Driver, world: any World, mailbox: Mailbox<RunLoop>, name: String?) {
        self.driver = driver
        self.world = world
        self.mailbox = mailbox
        self.name = name
        isVirtual = world.isVirtual
        timeOfPass = driver.now
        thread = pthread_self()
    }

    deinit {
        tearDown()
    }

    /// Ends the loop: its items are invalidated without being called, but for what they have for that, and what is queued
    /// is let go. Posts from other threads are refused from now on.
    package func tearDown() {
        guard !hasEnded else { return }
        // Among what was asked urgently is to let go of things on this thread, which is where they belong.
        let lastMail = mailbox.close()
        for case .urgent(let block) in lastMail.requests { block(self) }
        hasEnded = true
        var droppedBlocks = BlockQueue<RunLoop>()
        swap(&droppedBlocks, &blocks)
        // Every item knows that the loop has ended before anything is let go: deinits may ask any of them.
        let timed = timers.removeAll()
        for item in timed { item.homeChanged(to: nil) }
        let untimed = allUntimedItems()
        for item in untimed { item.setMembership(.none, in: self) }
        for item in timed { item.loopEnded() }
        for item in untimed { item.loopEnded() }
        for item in timed { UnownedReference(item).release() }
        locals = Locals()
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

    /// Whether its time is virtual.
    public let isVirtual: Bool

    /// Whether the process has been forked since the loop was made: then a loop of the real world is the parent's.
    package var isForked: Bool { forkCount != rlk_fork_count() && !isVirtual }
    private let forkCount = rlk_fork_count()

    /// The mode of the innermost run; `nil` while the loop does not run.
    public var currentMode: Mode? {
        checkThread()
        return innermostRun?.mode
    }

    /// Whether the loop sleeps. On the loop's own thread that is never seen; ask its remote from another.
    public var isWaiting: Bool { mailbox.isAsleep }

    /// Ends the innermost run at the end of the pass that is under way: what is due in it is still served, and the loop
    /// does not sleep any more. Nothing happens if the loop does not run. From another thread: ``Remote/stop()``.
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

    /// Makes the coming sleep of this pass end at once. After the sleep of a pass nothing happens, for another pass follows
    /// anyway; nor does it while the loop does not run. From another thread: ``Remote/wakeUp()``.
    public func wakeUp() {
        checkThread()
        isWakeUpPending = true
    }

    @inline(__always)
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

    // MARK: What modes hold

    @inline(__always)
    func state(of mode: Mode) -> ModeState { mode.id < modeStates.count ? modeStates[mode.id] : otherModes }

    @inline(__always)
    func observedActivities(in mode: Mode) -> Activity {
        mode.id < modeStates.count ? modeStates[mode.id].observedActivities : otherModes.observedActivities
    }

    /// Whether something besides timers keeps `mode` from being empty.
    @inline(__always)
    func isKeptAlive(_ mode: Mode) -> Bool {
        (mode.id < modeStates.count ? modeStates[mode.id].keepAliveCount : otherModes.keepAliveCount) > 0
    }

    func changeStates(of modes: ModeSet, _ change: (inout ModeState) -> Void) {
        modes.forEach { mode in
            while modeStates.count <= mode.id { modeStates.append(otherModes) }
            change(&modeStates[mode.id])
        }
    }

    func changeStates(of membership: Membership, _ change: (inout ModeState) -> Void) {
        guard membership.isEverywhere else { return changeStates(of: membership.modes, change) }
        for id in modeStates.indices { change(&modeStates[id]) }
        change(&otherModes)
    }

    /// An item joins its first mode.
    func keep(_ item: UntimedItem) {
        lastItemNumber += 1
        item.number = lastItemNumber
        untimedItems[ObjectIdentifier(item)] = item
    }

    /// An item has left its last mode.
    func letGo(_ item: UntimedItem) {
        untimedItems[ObjectIdentifier(item)] = nil
    }

    /// In the order in which they were added.
    func allUntimedItems() -> [UntimedItem] { untimedItems.values.sorted { $0.number < $1.number } }

    /// Traps unless the loop's structures agree with one another; for tests.
    package func checkInvariants() {
        timers.checkInvariants()
        for source in descriptors.all {
            precondition(source.token.flatMap { descriptors[$0] } === source, "a source lost its token")
            let isParked = parked.all.contains { $0 === source }
            precondition((source.parkedIndex != nil) == isParked, "a parked source is not on the list")
        }
        for state in modeStates + [otherModes] {
            let union = state.observers.reduce(into: Activity()) { $0.formUnion($1.observedActivities) }
            precondition(union == state.observedActivities, "a mode has lost count of what is observed in it")
        }
    }
}

/// What a mode holds besides what has a deadline.
struct ModeState {
    /// How many items keep it from being empty.
    var keepAliveCount = 0
    var observers: [RunLoop.UntimedItem] = []
    var observedActivities: RunLoop.Activity = []
}

@available(*, unavailable, message: "a run loop belongs to one thread; give other threads its remote")
extension RunLoop: Sendable {}

private let loopCount = Atomic<UInt64>(0)
