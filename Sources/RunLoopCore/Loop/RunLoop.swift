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
    @exclusivity(unchecked) var owner = OwningThread()

    // The state that every pass accesses is not checked for exclusive access. The checks were 44 % of the instructions
    // of a timer's fire (619 against 345 million for a virtual day of 86,400). It is safe because only the loop's
    // thread accesses it and no access is open while user code is called: code that makes a change keeps the released
    // objects until the change is over.

    // MARK: Scheduled items

    @exclusivity(unchecked) var modeTable = ModeTable()
    @exclusivity(unchecked) var timers = TimerQueue<TimedItem>()
    @exclusivity(unchecked) var untimed = UntimedItems()
    @exclusivity(unchecked) var signals = SignalQueue<Source>()
    @exclusivity(unchecked) var descriptors = SlotTable<Source>()
    @exclusivity(unchecked) var parked = ParkedList<Source>()
    /// Set if any descriptor source has had an order other than 0.
    var hasOrderedDescriptors = false

    /// The values that other objects keep in the loop; see ``Local``.
    var locals = Locals()

    // MARK: Work that waits

    @exclusivity(unchecked) var blocks = BlockQueue<RunLoop>()
    let ready = ReadyQueue()
    /// Indicates whether this pass is still to serve descriptors found ready. On the loop's thread.
    @_spi(Ports) public var hasReadyDescriptors: Bool { !ready.isEmpty }
    /// The buffer for collected mail. Empty between collections, but with its capacity.
    @exclusivity(unchecked) var mail = Mail<RunLoop>()

    // MARK: Runs, followers and the end

    @exclusivity(unchecked) var runs = Runs()
    @exclusivity(unchecked) var watching = Watching()
    /// Indicates whether the loop's thread is to end.
    @_spi(Ports) public var isEnding: Bool { runs.isEnding }
    /// Set if nothing is scheduled in the loop any more.
    @exclusivity(unchecked) @_spi(Ports) public private(set) var hasEnded = false
    /// Set while jobs of tasks still run: until the end of the loop has run the last of them.
    private(set) var takesJobs = true
    /// The time, if no callback has run since it was read.
    @exclusivity(unchecked) var freshTime: Instant?

    /// Creates a loop of the calling thread. Its mailbox may have been handed out before.
    init(driver: any Driver, world: any World, mailbox: Mailbox<RunLoop>) {
        self.driver = driver
        self.world = world
        self.mailbox = mailbox
        name = mailbox.name
        isVirtual = world.isVirtual
        passTime = driver.now
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
        let items = untimed.all
        // One that leaves may have others leave: a relay closes both of its streams.
        for item in items where item.isIn(self) { item.setMembership(.none, in: self) }
        for item in timed { item.loopEnded() }
        for item in items { item.loopEnded() }
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
    var isForked: Bool { owner.isForked && !isVirtual }

    /// The mode of the innermost run; `nil` while the loop does not run. On the loop's thread.
    public var currentMode: Mode? {
        checkThread()
        return runs.innermost?.mode
    }

    /// A Boolean value that indicates whether the loop is asleep, which only other threads see; see
    /// ``Remote/isWaiting``.
    public var isWaiting: Bool { mailbox.isAsleep }

    /// Ends the innermost run at the end of its pass: items that are due in the pass are still served, and the loop
    /// does not sleep again. Does nothing if the loop is not running. On the loop's thread; from other threads use
    /// ``Remote/stop()``.
    public func stop() {
        checkThread()
        runs.innermost?.isStopped = true
    }

    /// Ends every run under way, and lets later ones make a single pass.
    @_spi(Ports) public func endAllRuns() { runs.endAll() }

    /// Ends the next sleep of this pass at once. Has no effect after the sleep of a pass, because another pass follows
    /// anyway, or while the loop is not running. On the loop's thread; from other threads use ``Remote/wakeUp()``.
    public func wakeUp() {
        checkThread()
        runs.isWakeUpPending = true
    }

    @inline(__always)
    func checkThread() {
        if rlk_thread_pointer() != owner.usingThread { noteUse() }
    }

    /// Checks the thread of a use of one of the loop's items, which the sentence of the trap names.
    @inline(__always)
    func checkThread(of item: Item) {
        if rlk_thread_pointer() != owner.usingThread { noteUse(of: item) }
    }

    @inline(never)
    private func noteUse(of item: Item? = nil) {
        require(
            owner.isCalling,
            "\(item?.description ?? mailbox.loopDescription) was used on another thread: a run loop and what is scheduled in "
                + "it are used on the loop's own thread only; from here use its remote")
        watching.useHandler?()
    }

    /// Indicates whether the loop has not been used since its owner was to notice uses; `false` on other threads.
    var isUnused: Bool { owner.noticesUse && owner.isCalling }

    /// Notices a use, as ``checkThread()`` does, where the thread is known.
    @inline(__always)
    func noticeUse() {
        if isWatched(.uses) { checkThread() }
    }

    /// Returns the time, and reads it only if a callback has run since it was last read.
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
        blocks.checkInvariants()
        parked.checkInvariants()
        for source in descriptors.all {
            precondition(source.token.flatMap { descriptors[$0] }?.object === source, "a source lost its token")
            let isParked = parked.all.contains { $0 === source }
            precondition((source.parkedIndex != nil) == isParked, "a parked source is not on the list")
        }
        modeTable.checkInvariants()
    }
}

@available(*, unavailable, message: "a run loop belongs to one thread; give other threads its remote")
extension RunLoop: Sendable {}

private let loopCount = Atomic<UInt64>(0)
