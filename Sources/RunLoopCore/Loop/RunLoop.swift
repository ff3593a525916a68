internal import CShims
internal import Glibc
internal import Synchronization

/// An event loop with modes: it waits for timers, sources and blocks, and calls the ones in its running mode.
///
/// A loop belongs to one thread, and so do its timers, sources and observers; none of them is `Sendable`. Other threads
/// use its ``remote``. Unless noted, every method traps when it is called on another thread than the loop's.
///
/// The end of a loop invalidates everything that is scheduled in it, even items that others keep; handlers, targets and
/// their captures are released. <doc:HowAPassRuns> explains a pass, which is written in `RunLoop+Pass.swift`.
public final class RunLoop {
    /// The name of the loop's ``LoopThread``; `nil` on other threads.
    public let name: String?

    // Unchecked, like the state below.
    /// A closure to call with the loop's activity, for tracing and to find out why nothing happens. `nil`, the default,
    /// costs nothing. With `RUNLOOP_DEBUG=1` in the environment, new loops have a trace that writes each
    /// ``TraceEvent/ignored(_:)`` to standard error.
    @exclusivity(unchecked) public var trace: ((TraceEvent) -> Void)? { willSet { checkThread() } }

    /// Counters of the loop's activity since it was made.
    @exclusivity(unchecked) public internal(set) var statistics = Statistics()

    /// The number of calls of handlers and jobs so far.
    @_spi(Ports) public var callouts: Int {
        statistics.fires + statistics.sources + statistics.blocks + statistics.jobs
    }

    /// The driver by which the loop waits. On the loop's thread.
    @_spi(Ports) public let driver: any Driver
    @_spi(Ports) public let world: any World
    let mailbox: Mailbox<RunLoop>
    /// The loop's number, unique in the process, even among loops that have gone.
    let number = loopCount.wrappingAdd(1, ordering: .relaxed).newValue
    private let thread: UInt
    /// The loop's thread, or 0 while a host waits for the loop: the check that every use makes then notices the use.
    @exclusivity(unchecked) private var usingThread: UInt
    /// The kernel's number of the loop's thread.
    private(set) lazy var threadNumber = CallGate.thisThread

    // The state that every pass accesses is not checked for exclusive access. The checks were 44 % of the instructions
    // of a timer's fire (619 against 345 million for a virtual day of 86,400). It is safe because only the loop's
    // thread accesses it and no access is open while user code is called: code that makes a change keeps the released
    // objects until the change is over.

    // MARK: Scheduled items

    @exclusivity(unchecked) var commonModes = ModeSet(.default)
    /// The state of each mode, except items with a deadline, by the mode's id.
    @exclusivity(unchecked) private var modeStates: [ModeState] = []
    /// The state of any other mode: items that are in every mode.
    @exclusivity(unchecked) private var otherModes = ModeState()

    @exclusivity(unchecked) var timers = TimerQueue<TimedItem>()
    /// The scheduled items without a deadline.
    private var untimedItems: [ObjectIdentifier: UntimedItem] = [:]
    private var lastItemNumber = 0
    /// The number of items that observe runs; if it is 0, a pass need not look at each activity.
    @exclusivity(unchecked) private(set) var observerCount = 0

    @exclusivity(unchecked) var signals = SignalQueue<Source>()
    @exclusivity(unchecked) var descriptors = SlotTable<Source>()
    @exclusivity(unchecked) var parked = ParkedList<Source>()
    /// Set if any descriptor source has had an order other than 0.
    @exclusivity(unchecked) var hasOrderedDescriptors = false

    /// The values that other objects keep in the loop; see ``Local``.
    var locals = Locals()

    // MARK: Work that waits

    @exclusivity(unchecked) var blocks = BlockQueue<RunLoop>()
    let ready = ReadyQueue()
    /// Indicates whether this pass is still to serve descriptors found ready. On the loop's thread.
    @_spi(Ports) public var hasReadyDescriptors: Bool { !ready.isEmpty }
    /// The buffer for collected mail. Empty between collections, but with its capacity.
    @exclusivity(unchecked) var mail = Mail<RunLoop>()

    /// The item whose job is running: a `JobQueue`, which no other code sets.
    @exclusivity(unchecked) var jobItem: UnownedReference<UntimedItem>?

    /// The calls that the loop is making, while a monitor watches.
    @exclusivity(unchecked) var record: DispatchRecord? { didSet { calledMayBeWatched() } }
    /// The schedule that chooses for the loop, in an explored simulation.
    @exclusivity(unchecked) @_spi(Ports) public var schedule: (any CallSchedule)? { didSet { calledMayBeWatched() } }
    /// The log of the loop's events, while a recorder keeps one.
    @exclusivity(unchecked) var log: FlightLog? {
        didSet {
            flight = log.map { UnownedReference($0) }
            mailbox.notesPosters = log != nil
            calledMayBeWatched()
        }
    }
    /// Unretained `log`; retaining it cost four locked instructions per event.
    @exclusivity(unchecked) private(set) var flight: UnownedReference<FlightLog>?
    /// Notifies the guest of uses of the loop between its runs, while the loop is a guest.
    @exclusivity(unchecked) var useHandler: (() -> Void)? { didSet { calledMayBeWatched() } }
    /// The mode of the host's wait, and the run in whose handler it is; `nil` without a guest.
    @exclusivity(unchecked) var hostWait: (mode: Mode, run: UInt64?)?
    @exclusivity(unchecked) private(set) var isWatched = false
    /// Indicates whether the loop is watched, or has a guest.
    @exclusivity(unchecked) private(set) var isUseWatched = false

    private func calledMayBeWatched() {
        isWatched = record != nil || schedule != nil || flight != nil
        isUseWatched = isWatched || useHandler != nil
    }

    // MARK: The runs that are under way

    @exclusivity(unchecked) var innermostRun: Activation?
    /// The runs in which the innermost one is nested, the outermost first.
    @exclusivity(unchecked) var outerRuns: [Activation] = []
    @exclusivity(unchecked) var lastActivationNumber: UInt64 = 0
    /// Set if another thread's stop found no run to end: the next run will end.
    @exclusivity(unchecked) var isStopPending = false
    /// Set if the loop's thread is to end: every run ends, and a new run makes a single pass.
    @exclusivity(unchecked) @_spi(Ports) public internal(set) var isEnding = false
    /// Set if nothing is scheduled in the loop any more.
    @exclusivity(unchecked) @_spi(Ports) public private(set) var hasEnded = false
    /// Set while jobs of tasks still run: until the end of the loop has run the last of them.
    private(set) var takesJobs = true
    /// Set if the next sleep is to end at once.
    @exclusivity(unchecked) var isWakeUpPending = false
    /// The time, if no callback has run since it was read.
    @exclusivity(unchecked) var freshTime: Instant?

    struct Activation {
        let mode: Mode
        let limit: Instant
        let isPoll: Bool
        let returnsAfterSource: Bool
        let number: UInt64
        var isStopped = false
    }

    /// Creates a loop of the calling thread. Its mailbox may have been handed out before.
    init(driver: any Driver, world: any World, mailbox: Mailbox<RunLoop>) {
        self.driver = driver
        self.world = world
        self.mailbox = mailbox
        name = mailbox.name
        isVirtual = world.isVirtual
        passTime = driver.now
        thread = rlk_thread_pointer()
        usingThread = thread
        if Self.warnsOfIgnored { trace = Self.warning(ofLoop: mailbox.name) }
        noteLiving(true)
    }

    deinit {
        tearDown()
    }

    /// Ends the loop. The items are invalidated: their invalidation handlers are called, but not their handlers. Queued
    /// work is released. From now on posts from other threads are refused.
    @_spi(Ports) public func tearDown() {
        guard !hasEnded else { return }
        tellIfNeverRun()
        letGoOfAll()
        runLastJobs()
    }

    /// Releases all contents of the loop. Tasks that waited for some of it are then among the last jobs.
    private func letGoOfAll() {
        // Urgent requests may release objects on this thread, which owns them.
        let lastMail = mailbox.close()
        for case .urgent(let block) in lastMail.requests { block(self) }
        hasEnded = true
        noteLiving(false)
        var droppedBlocks = BlockQueue<RunLoop>()
        swap(&droppedBlocks, &blocks)
        // Every item learns that the loop has ended before anything is released: deinits may use any of them.
        let (timed, calls) = timers.removeAll()
        for item in timed { item.homeChanged(to: nil) }
        let untimed = allUntimedItems()
        // One that leaves may have others leave: a relay closes both of its streams.
        for item in untimed where item.isIn(self) { item.setMembership(.none, in: self) }
        for item in timed { item.loopEnded() }
        for item in untimed { item.loopEnded() }
        for call in calls where call.label == .sleep { call.block() }
        for item in timed where item.isKept { UnownedReference(item).release() }
        // Also values that are made meanwhile.
        while !locals.isEmpty {
            var last = Locals()
            swap(&last, &locals)
        }
    }

    /// Runs the waiting jobs, and jobs that they enqueue, because a job cannot be refused. From then on none is taken.
    ///
    /// A task that swallows the errors of its waits may continue forever: its jobs after the last round are left.
    private func runLastJobs() {
        let executors = mailbox.executors
        var (rounds, left) = (0, [(executor: any JobExecutor<RunLoop>, job: UnownedJob, way: JobWay)]())
        repeat {
            var jobs = mailbox.takeJobs()
            while let job = jobs.popFirst() { job.executor.take(job.job, by: job.way, in: self) }
            rounds += 1
            for executor in executors {
                if rounds <= Self.mostLastRounds {
                    executor.runWaiting(in: self)
                } else {
                    left += executor.takeWaiting().map { (executor, $0.job, $0.way) }
                }
            }
        } while !(executors.allSatisfy(\.isIdle) && mailbox.closeToJobs())
        takesJobs = false
        for (executor, job, way) in left where !world.keeps(endless: job.task, with: driver) {
            executor.refuse(job, by: way)
        }
    }

    /// The number of rounds after the end of the loop: far more than cleaning up takes.
    private static let mostLastRounds = 10_000

    // MARK: Time and state

    /// The time on the loop's clock, which is the only clock of its timers. Virtual in a simulation. On the loop's
    /// thread.
    public var now: Instant { driver.now }

    // Unchecked, like the state above.
    /// The time that the present pass has read, after its sleep and before it called anything; between passes, the time
    /// of the last one. Before the first pass, the time when the loop was made. On the loop's thread.
    ///
    /// Reading it costs nothing, while ``now`` reads the clock. A date counted from it is early by the duration of the
    /// pass so far. Use it where that does no harm, such as the time stamps of a log, and never for a timeout that must
    /// not come early.
    @exclusivity(unchecked) public internal(set) var passTime: Instant

    /// A Boolean value that indicates whether the loop's time is virtual. Any thread.
    public let isVirtual: Bool

    /// Indicates whether the process was forked after the loop was made. If so, a loop of the real world is the
    /// parent's.
    var isForked: Bool { forkCount != rlk_fork_count() && !isVirtual }
    private let forkCount = rlk_fork_count()

    /// The mode of the innermost run; `nil` while the loop does not run. On the loop's thread.
    public var currentMode: Mode? {
        checkThread()
        return innermostRun?.mode
    }

    /// A Boolean value that indicates whether the loop is asleep, which only other threads see; see
    /// ``Remote/isWaiting``.
    public var isWaiting: Bool { mailbox.isAsleep }

    /// Ends the innermost run at the end of its pass: items that are due in the pass are still served, and the loop
    /// does not sleep again. Does nothing if the loop is not running. On the loop's thread; from other threads use
    /// ``Remote/stop()``.
    public func stop() {
        checkThread()
        innermostRun?.isStopped = true
    }

    /// Ends every run under way, and lets later ones make a single pass.
    @_spi(Ports) public func endAllRuns() {
        isEnding = true
        innermostRun?.isStopped = true
        for index in outerRuns.indices { outerRuns[index].isStopped = true }
    }

    /// Ends the next sleep of this pass at once. Has no effect after the sleep of a pass, because another pass follows
    /// anyway, or while the loop is not running. On the loop's thread; from other threads use ``Remote/wakeUp()``.
    public func wakeUp() {
        checkThread()
        isWakeUpPending = true
    }

    @inline(__always)
    func checkThread() {
        if rlk_thread_pointer() != usingThread { noteUse() }
    }

    /// Checks the thread of a use of one of the loop's items, which the sentence of the trap names.
    @inline(__always)
    func checkThread(of item: Item) {
        if rlk_thread_pointer() != usingThread { noteUse(of: item) }
    }

    @inline(never)
    private func noteUse(of item: Item? = nil) {
        require(
            rlk_thread_pointer() == thread,
            "\(item?.description ?? mailbox.loopDescription) was used on another thread: a run loop and what is scheduled in "
                + "it are used on the loop's own thread only; from here use its remote")
        useHandler?()
    }

    /// Indicates whether the next use of the loop on its thread is noticed.
    var noticesUse: Bool {
        get { usingThread != thread }
        set { usingThread = newValue ? 0 : thread }
    }

    /// Indicates whether the loop has not been used since ``noticesUse`` was set; `false` on other threads.
    var isUnused: Bool { noticesUse && rlk_thread_pointer() == thread }

    /// Notices a use, as ``checkThread()`` does, where the thread is known.
    @inline(__always)
    func noticeUse() {
        if isUseWatched { checkThread() }
    }

    func emit(_ event: TraceEvent) {
        trace?(event)
    }

    /// Returns the time, and reads it only if a callback has run since it was last read.
    @inline(__always)
    func recentTime() -> Instant {
        if let freshTime { return freshTime }
        let now = driver.now
        freshTime = now
        return now
    }

    // MARK: Contents of modes

    @inline(__always)
    func state(of mode: Mode) -> ModeState { mode.id < modeStates.count ? modeStates[mode.id] : otherModes }

    @inline(__always)
    func observedActivities(in mode: Mode) -> Activity {
        mode.id < modeStates.count ? modeStates[mode.id].observedActivities : otherModes.observedActivities
    }

    /// Returns whether something besides timers keeps `mode` from being empty.
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

    /// Keeps an item that joins its first mode.
    func keep(_ item: UntimedItem) {
        lastItemNumber += 1
        item.number = lastItemNumber
        assert(untimedItems[ObjectIdentifier(item)] == nil, "an item joins its first mode twice")
        untimedItems[ObjectIdentifier(item)] = item
        if !item.observedActivities.isEmpty { observerCount += 1 }
    }

    /// Releases an item that has left its last mode.
    func letGo(_ item: UntimedItem) {
        assert(untimedItems[ObjectIdentifier(item)] === item, "an item leaves a loop that does not keep it")
        assert(item.observedActivities.isEmpty || observerCount > 0, "the loop has lost count of its observers")
        untimedItems[ObjectIdentifier(item)] = nil
        if !item.observedActivities.isEmpty { observerCount -= 1 }
    }

    /// Returns the items without a deadline, in the order in which they were added.
    func allUntimedItems() -> [UntimedItem] { untimedItems.values.ordered { $0.number < $1.number } }

    /// Traps unless the loop's structures agree with one another; for tests.
    @_spi(Ports) public func checkInvariants() {
        timers.checkInvariants()
        blocks.checkInvariants()
        parked.checkInvariants()
        for source in descriptors.all {
            precondition(source.token.flatMap { descriptors[$0] }?.object === source, "a source lost its token")
            let isParked = parked.all.contains { $0 === source }
            precondition((source.parkedIndex != nil) == isParked, "a parked source is not on the list")
        }
        for state in modeStates + [otherModes] {
            let union = state.observers.reduce(into: Activity()) { $0.formUnion($1.observedActivities) }
            precondition(union == state.observedActivities, "a mode has lost count of its observed activities")
        }
    }
}

/// The state of a mode, except items with a deadline.
struct ModeState {
    /// The number of items that keep the mode from being empty.
    var keepAliveCount = 0
    var observers: [RunLoop.UntimedItem] = []
    var observedActivities: RunLoop.Activity = []
}

@available(*, unavailable, message: "a run loop belongs to one thread; give other threads its remote")
extension RunLoop: Sendable {}

private let loopCount = Atomic<UInt64>(0)
