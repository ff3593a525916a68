internal import CShims
internal import Glibc
@_spi(Ports) internal import RunLoopCore
internal import Synchronization

/// The virtual time that all loops of a simulation share, and the order in which their threads run.
///
/// Every loop has a thread, and exactly one thread runs at any moment; the others rest in a wait. When the running
/// thread rests, the next is a woken thread, or else the thread with the earliest deadline; among equal deadlines, the
/// thread that was started first. Only then does the time move. Events of the world have dates of their own, and come
/// before equal deadlines. A simulation is therefore exact, and the same in every run.
final class Timeline: Sendable {
    let isTraced: Bool
    /// `true` if the history includes the events of loops.
    let recordsLoops: Bool
    let history: History
    /// The simulation, which outlives its threads.
    // Unsafe, but set before it has a thread. Not weak: every reference count would go through a side table, and a
    // callback that uses it would take 125 instructions more.
    nonisolated(unsafe) unowned(unsafe) var owner: AnyObject?
    let clock = Clock()
    /// The time when many steps had last been taken, and the rest that followed.
    private let latestSteps = Locked((date: RunLoop.Instant.distantPast, rest: Duration.zero))
    /// The moment before which the running thread may wait without the lock: as long as it is the only thread and has
    /// not been woken, nothing else can happen before its deadline. Otherwise the distant past.
    private let soloEnd = Atomic(RunLoop.Instant.distantPast.nanoseconds)
    let state: Locked<State>
    /// The process of the test's own threads, and the first of these.
    let test = Process(on: nil, isTest: true)
    let main: Thread
    /// The answers of the simulation to its threads' calls to the C library, at an address from `rlk_make_answers`.
    // Unsafe, because C reads it at this address: on the thread whose turn it is, as it is changed.
    nonisolated(unsafe) let answersCalls: UnsafeMutablePointer<UInt32>
    /// The schedule, if the simulation is explored.
    let schedule: Schedule?
    /// The events that may be chosen to happen between two handlers, or at a place within one.
    let occasions = Locked<[Occasion]>([])
    /// `true` if events may happen at places within handlers.
    let hasPlaces = Atomic(false)
    /// The marks met so far.
    let knownMarks = Locked(Simulation.Marks())
    /// The tasks that have continued forever after the end of their loops, in order.
    let endlessTasks = Locked<[Simulation.HostError]>([])
    /// The lateness of the latest fire so far, and the item that fired, over the loops whose events are recorded.
    let latestFire = Locked<(lateness: Duration, item: String)?>(nil)

    /// The requested look, if any.
    let look: Look?

    init(
        isTraced: Bool, recordsLoops: Bool, schedule: Schedule?, listener: (@Sendable (TracedEvent) -> Void)?,
        look: Look?
    ) {
        self.isTraced = isTraced
        self.recordsLoops = isTraced || recordsLoops
        self.schedule = schedule
        self.look = look
        schedule?.time = { [clock] in clock.now }
        guard let answers = rlk_make_answers() else { fatalError("no memory is left for a simulation") }
        answersCalls = answers
        history = History(listener)
        state = Locked(
            State(
                clock: clock, schedule: schedule, look: look, history: isTraced ? history : nil,
                patience: schedule == nil ? .seconds(60) : .zero))
        main = Thread("main", number: 0, isService: false, of: test, besides: nil)
        (main.system, main.lockNumber) = (pthread_self(), rlk_own_number())
        change { enter(main, &$0) }
        if look != nil { schedule?.takeLook = { [unowned self] in takeLook() } }
    }

    deinit {
        // The main thread does not end with the simulation.
        state.withLock { $0.living.forEach { $0.release() } }
        rlk_free_answers(answersCalls)
    }

    var now: RunLoop.Instant { clock.now }

    /// Wakes `thread` when no event is left before `date`. Delays no other thread: time passes the date while the
    /// thread works, or waits for another thread.
    func beginHorizon(_ thread: Thread, at date: RunLoop.Instant) {
        change { state in
            let outer = state.horizon(of: thread).map { state.horizons[$0].date }
            state.horizons.append((thread, min(date, outer ?? .distantFuture)))
        }
    }

    func endHorizon(_ thread: Thread) {
        change { state in _ = state.horizons.remove(at: state.horizon(of: thread)!) }
    }

    /// Changes the state of the threads.
    func change<Result>(_ body: (inout State) -> Result) -> Result {
        state.withLock { state in
            let result = body(&state)
            soloEnd.store(state.findSoloEnd().nanoseconds, ordering: .releasing)
            return result
        }
    }

    // MARK: Threads

    /// Makes another thread, whose turn comes when the running one rests.
    func makeThread(named name: String, in process: Process, isService: Bool = false) -> Thread {
        change { state in
            let thread = Thread(name, number: state.threadCount, isService: isService, of: process, besides: main)
            enter(thread, &state)
            return thread
        }
    }

    private func enter(_ thread: Thread, _ state: inout State) {
        state.threadCount += 1
        state.living.append(.passRetained(thread))
        history.setAlive(true, thread.lane, at: state.clock.now)
    }

    /// Waits for the first turn of a new thread. Called first on that thread.
    func awaitTurn(_ thread: Thread) {
        state.withLock { state in
            (thread.system, thread.lockNumber) = (pthread_self(), rlk_own_number())
            // The system may use a number again.
            state.endedThreads[thread.lockNumber] = nil
        }
        thread.takeFirstTurn()
    }

    /// Keeps the handle of a thread, to join it at the end of the simulation at the latest, or when its process is
    /// killed. Joins threads that have ended meanwhile.
    func keep(_ handle: ThreadHandle, of thread: Thread) {
        let ended = state.withLock { state in
            thread.handle = handle
            let ended = state.unjoinedThreads.filter(\.hasEnded)
            state.unjoinedThreads.removeAll(where: \.hasEnded)
            state.unjoinedThreads.append(thread)
            return ended
        }
        // Not under the lock, which the destructors of a thread's local memory may need.
        let ending = ended.filter { !$0.handle!.joinIfEnded() }
        state.withLock { state in
            state.unjoinedThreads += ending
            guard !thread.process.isTest else { return }
            thread.process.threads.removeAll { $0.isGone }
            thread.process.threads.append(thread)
        }
    }

    /// Ends a thread. Called last on that thread.
    func leave(_ thread: Thread) {
        let ended = thread.ended
        thread.ended = {}
        ended()
        let next = change { state in
            end(thread, &state)
            thread.park()
            return state.chooseNext()
        }
        thread.leave(to: act(next))
    }

    private func end(_ thread: Thread, _ state: inout State) {
        thread.rest = .ended
        thread.loop = nil
        let index = state.livingThreads.firstIndex { $0 === thread }!
        state.living.remove(at: index).release()
        AddressWaits.end(of: thread)
        state.holds.removeAll { $0.thread === thread }
        state.withinHandlers.removeAll { $0 === thread }
        state.horizons.removeAll { $0.thread === thread }
        let others = state.livingThreads
        if !others.contains(where: { $0.lane == thread.lane }) {
            history.setAlive(false, thread.lane, at: state.clock.now)
        }
        for other in others {
            if case .join(UnownedReference(thread)) = other.rest { other.rest = .none }
        }
        let process = thread.process
        if process.ending != nil, !others.contains(where: { $0.process === process }) {
            process.threads = []
            state.endingProcesses -= 1
            state.isEnding = state.closed != nil || state.endingProcesses > 0
        }
    }

    /// Ends the threads of a process where they are: they run nothing more, and the objects that they hold are never
    /// released. If the calling thread is one of them, the call does not return.
    func kill(_ process: Process) {
        let (threads, own, next) = change { state -> ([Thread], Thread?, Next?) in
            let threads = process.threads
            let own = threads.first(where: \.isCurrent)
            process.threads = []
            for thread in state.livingThreads where thread.process === process {
                end(thread, &state)
                state.endedThreads[thread.lockNumber] = thread.name
                schedule?.threadWasKilled(thread.number)
            }
            return (threads, own, own == nil ? nil : state.chooseNext())
        }
        // A lock that was handed to one of the killed threads is still free.
        for lock in threads.compactMap({ $0.awaited?.lock }) {
            _ = AddressWaits.signal(UInt(bitPattern: lock.address), bits: .max, most: 1)
        }
        for thread in threads { thread.stop() }
        guard let own, let next else { return }
        own.leave(to: act(next))
        rlk_end_thread()
    }

    /// Rests until another thread has ended. A thread outside the simulation has no turn to give away.
    func join(_ thread: Thread) {
        let system = pthread_self()
        let own = state.withLock { state in state.livingThreads.first { $0.system == system } }
        if let own { join(thread, from: own) }
    }

    /// Rests until a thread of the system has ended, if the simulation has that thread.
    func join(_ system: pthread_t, from own: Thread) {
        let thread = state.withLock { state in state.livingThreads.first { $0.system == system } }
        if let thread, thread !== own { join(thread, from: own) }
    }

    private func join(_ thread: Thread, from own: Thread) {
        RunLoop.installed?.callTakesTime()
        rest(own) { state in
            if case .ended = thread.rest { return false }
            own.rest = .join(UnownedReference(thread))
            // Only the end of the awaited thread ends such a wait, so a circle of waits is reported at once.
            var circle = [own]
            while case .join(let next) = circle.last!.rest {
                circle.append(next.object)
                if circle.last === own { state.fail(circle.dropLast()) }
            }
            return true
        }
    }

    /// Makes every wait end at once as starved, so that all threads can end, and waits until they have.
    func close(from own: Thread) {
        let last = change { state in
            state.closed = state.closed ?? state.clock.now
            state.isEnding = true
            state.nextEvent = .distantFuture
            state.holds.removeAll()
            return state.agenda.removeAll()
        }
        for appointment in last { appointment.callOff() }
        // Threads that end may start others.
        while let other = state.withLock({ $0.livingThreads.first { $0 !== own } }) {
            join(other, from: own)
        }
    }

    /// Waits until the system has ended the threads that have left the simulation, with their thread-local memory.
    func joinThreads() {
        let ended = state.withLock { state in
            defer { state.unjoinedThreads = [] }
            return state.unjoinedThreads
        }
        for thread in ended { thread.handle!.join() }
    }

    /// Makes every wait of a process's threads end at once as starved, so that they can end.
    func close(_ process: Process) {
        change { state in
            guard process.ending == nil else { return }
            process.ending = state.clock.now
            state.endingProcesses += 1
            state.isEnding = true
        }
    }

    // MARK: Waiting

    /// The reason why a loop's wait ended.
    enum WaitEnd {
        case woke
        case starved
        /// The loop has something to do, but the thread's horizon has passed.
        case late
        /// The simulation or the process has ended, and nothing is left to do, or work has taken time since then. The
        /// thread is to end: a loop that receives work faster than it can do it would never end.
        case over
    }

    func wait(_ thread: Thread, until deadline: RunLoop.Instant) -> WaitEnd {
        if deadline.nanoseconds < soloEnd.load(ordering: .acquiring) {
            clock.now = max(clock.now, deadline)
            return .woke
        }
        var atOnce = WaitEnd.woke
        let outcome = rest(thread) { state in
            if state.isEnding, let closed = state.endBegan(thread), state.clock.now > closed {
                atOnce = .over
                return false
            }
            if thread.isWoken {
                thread.isWoken = false
                return false
            }
            guard deadline > state.clock.now else {
                if let horizon = state.horizon(of: thread), state.clock.now > state.horizons[horizon].date {
                    atOnce = .late
                }
                return false
            }
            thread.rest = .until(deadline, wakeable: true)
            return true
        }.outcome
        guard outcome == .starved else { return atOnce }
        return state.withLock { $0.endBegan(thread) == nil } ? .starved : .over
    }

    /// Makes the thread work, without answering, until `date`, if its work is not done already.
    func work(_ thread: Thread, until date: RunLoop.Instant, unless isOver: () -> Bool = { false }) {
        rest(thread) { state in
            guard date > state.clock.now, !isOver() else { return false }
            thread.rest = .until(date, wakeable: false)
            return true
        }
    }

    /// Returns the rest of a task or thread that has taken many steps; `nil` if time has passed since as many steps
    /// before.
    ///
    /// A task or thread that takes many steps may be polling for something that another one or the clock will bring. On
    /// a real machine its steps take time. The rests double, so it waits at most twice as long as it has to.
    func restAfterSteps() -> Duration? {
        latestSteps.withLock { latest in
            let rest: Duration =
                now != latest.date ? .zero : latest.rest == .zero ? .milliseconds(1) : latest.rest * 2
            latest = (now + rest, rest)
            return rest == .zero ? nil : rest
        }
    }

    /// Lets the other threads do their present work, without moving time.
    ///
    /// - Returns: `true` if any of them ran.
    func yield(_ thread: Thread) -> Bool {
        rest(thread) { _ in
            thread.rest = .calm
            return true
        }.othersRan
    }

    /// Lets another thread that has something to do go first, if it is chosen.
    func giveWay(_ thread: Thread) {
        rest(thread) { state in
            guard !state.isEnding else { return false }
            thread.rest = .until(state.clock.now, wakeable: false)
            state.givesWay = thread
            return true
        }
    }

    func wake(_ thread: Thread) {
        change { state in
            thread.isWoken = true
            state.endOutsideWait()
        }
    }

    func wait(at latch: LatchState) -> WaitOutcome {
        RunLoop.installed?.callTakesTime()
        return rest(latch.waiter) { _ in
            guard !latch.isOpen.load(ordering: .relaxed) else { return false }
            latch.waiter.rest = .latch(UnownedReference(latch))
            return true
        }.outcome
    }

    func open(_ latch: LatchState) {
        let thread = change { state -> Thread? in
            latch.isOpen.store(true, ordering: .relaxed)
            guard case .latch(UnownedReference(latch)) = latch.waiter.rest else { return nil }
            // A thread outside the simulation may open the latch; then no other thread passes on the turn.
            let isSomebodyAtWork =
                state.isActing || state.isWaitingOutside
                || state.livingThreads.contains {
                    if case .none = $0.rest { true } else { false }
                }
            latch.waiter.begin(.woke)
            state.endOutsideWait()
            return isSomebodyAtWork ? nil : latch.waiter
        }
        thread?.giveTurn()
    }

    /// - Returns: the reason why the rest ended, and whether another thread ran meanwhile.
    @discardableResult
    func rest(
        _ thread: Thread, choosing next: (inout State) -> Next = { $0.chooseNext() }, _ begin: (inout State) -> Bool
    ) -> (outcome: WaitOutcome, othersRan: Bool) {
        let first = change { state -> Next? in
            guard begin(&state) else { return nil }
            thread.lastRest = state.clock.now
            thread.park()
            return next(&state)
        }
        guard let first else { return (.woke, false) }
        let next = act(first)
        if next === thread {
            thread.unpark()
        } else {
            thread.passTurn(to: next)
        }
        return (thread.outcome, next !== thread)
    }

    /// Performs the world's events before the next turn of a thread, and returns that thread.
    @inline(__always)
    private func act(_ next: Next) -> Thread? {
        switch next {
        case .thread(let thread): thread
        case .world: actForWorld()
        case .nobody: nil
        }
    }

    @inline(never)
    private func actForWorld() -> Thread? {
        while true {
            let (event, isWaitingOutside) = state.withLock { ($0.event.take(), $0.isWaitingOutside) }
            event?.keep()
            if isWaitingOutside { waitOutside() }
            let next = change { state in
                (state.isActing, state.isWaitingOutside) = (false, false)
                return state.chooseNext()
            }
            switch next {
            case .thread(let thread): return thread
            case .world: continue
            case .nobody: return nil
            }
        }
    }

    // MARK: Descriptors

    func setWatch(_ thread: Thread, _ token: SourceToken, _ watch: (descriptor: Int32, events: DescriptorEvents)?) {
        state.withLock { _ in
            thread.watches[token] = watch
            if thread.clockWatch?.token == token { thread.clockWatch = nil }
        }
    }

    /// The ready descriptors of a thread, by token.
    func takeReady(_ thread: Thread) -> [(SourceToken, DescriptorEvents)] {
        state.withLock { _ in
            guard let clock = thread.clockWatch, clock.wasSet else { return thread.ready }
            thread.clockWatch!.wasSet = false
            return [(clock.token, .readable)] + thread.ready
        }
    }

    // MARK: The wall clock

    /// Notifies the threads of a process that watch the wall clock of a change to it.
    func wallClockWasSet(in process: Process) {
        change { state in
            for thread in state.livingThreads where thread.process === process {
                thread.clockWatch?.wasSet = true
            }
        }
    }

    // MARK: Events of the world

    /// Schedules an event at `date`, or as soon as the running thread rests if the date has come. The event runs on the
    /// thread that rests, and calls no user code.
    func schedule(
        at date: RunLoop.Instant, _ what: StaticString, from sender: String? = nil, on host: String,
        _ action: @escaping () -> Void
    ) -> Appointment {
        let appointment = Appointment(what, from: sender, host, action)
        let isTooLate = change { state in
            guard state.closed == nil else { return true }
            state.agenda.insert(appointment, at: date)
            state.nextEvent = min(state.nextEvent, date)
            return false
        }
        if isTooLate { appointment.callOff() }
        return appointment
    }
}
