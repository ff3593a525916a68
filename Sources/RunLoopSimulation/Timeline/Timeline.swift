internal import Glibc
internal import RunLoopCore
internal import Synchronization

/// The virtual time that all loops of a simulation share, and the order in which their threads run.
///
/// Every loop has a thread, and exactly one thread runs at any moment; the others rest in a wait. When the running one
/// rests, the next is a woken thread, or else the thread with the earliest deadline, and among equal deadlines the
/// thread that was started first. Only then does the time move. Events of the world have their own dates, and come
/// before the deadlines that are equal to them. So a simulation is exact, and the same in every run.
final class Timeline: Sendable {
    let isTraced: Bool
    /// Whether the history includes the events of loops.
    let recordsLoops: Bool
    let history: History
    /// The simulation, which outlives its threads.
    // Unsafe, but set before it has a thread. Not weak: every reference count would go through a side table, and a
    // callback that uses it would take 125 instructions more.
    nonisolated(unsafe) unowned(unsafe) var owner: AnyObject?
    let clock = Clock()
    /// The moment before which the running thread may wait without the lock: as long as it is the only thread and
    /// nobody has woken it, nothing else can happen before its deadline. Otherwise it is the beginning of time.
    private let soloEnd = Atomic(RunLoop.Instant.distantPast.nanoseconds)
    private let worldsTurn = Turn()
    let state: Locked<State>
    /// The choices where the order is not determined, if the simulation is explored.
    let choices: (any Choices)?
    /// Events that may be chosen to happen between two handlers.
    let occasions = Locked<[Occasion]>([])
    /// The lateness of the latest fire so far, and its item, over the loops whose events are recorded.
    let latestFire = Locked<(lateness: Duration, item: String)?>(nil)

    init(isTraced: Bool, recordsLoops: Bool, choices: (any Choices)? = nil) {
        self.isTraced = isTraced
        self.recordsLoops = isTraced || recordsLoops
        self.choices = choices
        history = History(choices?.listener)
        state = Locked(
            State(
                clock: clock, worldsTurn: worldsTurn, choices: choices,
                history: isTraced && choices != nil ? history : nil, isExplored: choices != nil))
    }

    var now: RunLoop.Instant { clock.now }

    /// Makes the thread learn, from now on, when nothing is left to happen until `date`. It delays nobody: time passes
    /// the date while the thread works, or waits for another thread.
    func beginHorizon(_ index: Int, at date: RunLoop.Instant) {
        change { state in
            let outer = state.horizon(of: index).map { state.horizons[$0].date }
            state.horizons.append(Horizon(index: index, date: min(date, outer ?? .distantFuture)))
        }
    }

    func endHorizon(_ index: Int) {
        change { state in _ = state.horizons.remove(at: state.horizon(of: index)!) }
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

    /// Enters another thread. Its turn comes when the running one rests.
    func enter(named name: String, host: Int = 0, isService: Bool = false, thread: pthread_t? = nil) -> Int {
        change { state in
            state.participants.append(Participant(name: name, isService: isService, thread: thread))
            state.hosts.append(host)
            state.loops.append(nil)
            state.living.append(state.participants.count - 1)
            history.setAlive(true, state.lane(of: state.participants.count - 1).name, at: state.clock.now)
            return state.participants.count - 1
        }
    }

    /// The number of threads that have not ended; each rest looks only at these.
    var livingCount: Int { state.withLock { $0.living.count } }

    /// Called first on a thread that was entered.
    func awaitTurn(_ index: Int) {
        state.withLock { state in
            state.participants[index].thread = pthread_self()
            return state.participants[index].turn
        }.take()
    }

    /// Keeps the handle of a thread, which is detached if its host is killed.
    func keep(_ thread: ThreadHandle, of index: Int) {
        state.withLock { state in
            let host = state.hosts[index]
            if host != 0 { state.handles[host, default: []].append(thread) }
        }
    }

    /// Called last on a thread.
    func leave(_ index: Int) {
        let next = change { state in
            end(index, &state)
            return state.chooseNext()
        }
        act(next)?.give()
    }

    private func end(_ index: Int, _ state: inout State) {
        state.participants[index].rest = .ended
        state.loops[index] = nil
        state.living.removeAll { $0 == index }
        state.holds.removeAll { $0.index == index }
        let lane = state.lane(of: index).name
        if !state.living.contains(where: { state.lane(of: $0).name == lane }) {
            history.setAlive(false, lane, at: state.clock.now)
        }
        for other in state.living {
            if case .join(index) = state.participants[other].rest { state.participants[other].rest = .none }
        }
        let host = state.hosts[index]
        if state.closedHosts[host] != nil, !state.living.contains(where: { state.hosts[$0] == host }) {
            (state.closedHosts[host], state.handles[host]) = (nil, nil)
            state.isEnding = state.isClosing || !state.closedHosts.isEmpty
        }
    }

    /// Makes a number for threads that live and die together; 0 is that of the test's own threads.
    ///
    /// - Parameter machine: the machine whose lane they share.
    func makeHost(on machine: String) -> Int {
        change { state in
            state.machines.append(machine)
            return state.machines.count - 1
        }
    }

    /// Makes the test's own threads belong to a host of this name.
    func nameTest(_ name: String) {
        state.withLock { state in
            history.rename(state.lane(of: 0).name, to: name)
            state.machines[0] = name
        }
    }

    /// Ends the threads of a host where they are: none of them runs anything more. The system keeps them, at rest, with
    /// everything that they hold. If the calling thread is one of them, the call does not return.
    func kill(host: Int) {
        let thread = pthread_self()
        let own = change { state -> (turn: Turn, next: Turn?)? in
            var own: Turn?
            // No thread is left that could join them.
            for thread in state.handles.removeValue(forKey: host) ?? [] { thread.detach() }
            for index in state.living where state.hosts[index] == host {
                let participant = state.participants[index]
                if case .none = participant.rest, participant.thread == thread { own = participant.turn }
                end(index, &state)
                state.horizons.removeAll { $0.index == index }
            }
            return own.map { ($0, state.chooseNext()) }
        }
        guard let own else { return }
        act(own.next)?.give()
        own.turn.take()
        fatalError("a thread that has ended got its turn")
    }

    /// Rests until another thread has ended. A thread outside of the simulation has no turn to give away.
    func join(_ index: Int) {
        let thread = pthread_self()
        let own = state.withLock { state in state.living.first { state.participants[$0].thread == thread } }
        if let own { join(index, from: own) }
    }

    private func join(_ index: Int, from own: Int) {
        RunLoop.installed?.callTakesTime()
        rest(own) { state in
            if case .ended = state.participants[index].rest { return false }
            state.participants[own].rest = .join(index)
            // Only the awaited end ends such a wait, so a circle of waits is reported at once.
            var circle = [own]
            while case .join(let next) = state.participants[circle.last!].rest {
                if next == own { state.fail(circle) }
                circle.append(next)
            }
            return true
        }
    }

    /// Makes every wait end at once as starved, so that all threads can end; waits until they have.
    func close(from own: Int) {
        let last = change { state in
            state.closed = state.closed ?? state.clock.now
            state.isEnding = true
            state.nextEvent = .distantFuture
            state.holds.removeAll()
            return state.agenda.removeAll()
        }
        for appointment in last { appointment.callOff() }
        // Threads that end may start others.
        while let other = state.withLock({ $0.living.first { $0 != own } }) { join(other, from: own) }
    }

    /// Makes every wait of a host's threads end at once as starved, so that they can end.
    func close(host: Int) {
        change { state in
            state.closedHosts[host] = state.closedHosts[host] ?? state.clock.now
            state.isEnding = true
        }
    }

    // MARK: Waiting

    /// The end of a loop's wait.
    enum WaitEnd {
        case woke
        case starved
        /// There is something to do, but the thread's horizon has passed.
        case late
        /// There may be something to do, but the simulation has ended, and work has taken time since then. A loop that
        /// receives work faster than it can do it would never end.
        case over
    }

    func wait(_ index: Int, until deadline: RunLoop.Instant) -> WaitEnd {
        if deadline.nanoseconds < soloEnd.load(ordering: .acquiring) {
            clock.now = max(clock.now, deadline)
            return .woke
        }
        var atOnce = WaitEnd.woke
        let outcome = rest(index) { state in
            if state.isEnding, let closed = state.endBegan(index), state.clock.now > closed {
                atOnce = .over
                return false
            }
            if state.participants[index].isWoken {
                state.participants[index].isWoken = false
                return false
            }
            guard deadline > state.clock.now else {
                if let horizon = state.horizon(of: index), state.clock.now > state.horizons[horizon].date {
                    atOnce = .late
                }
                return false
            }
            state.participants[index].rest = .until(deadline, wakeable: true)
            return true
        }.outcome
        return outcome == .starved ? .starved : atOnce
    }

    func isEnding(_ index: Int) -> Bool { state.withLock { $0.endBegan(index) != nil } }

    /// Makes the thread work, without answering, until that date.
    func work(_ index: Int, until date: RunLoop.Instant) {
        rest(index) { state in
            guard date > state.clock.now else { return false }
            state.participants[index].rest = .until(date, wakeable: false)
            return true
        }
    }

    /// Lets the other threads do their present work, without moving time.
    ///
    /// - Returns: whether any of them ran.
    func yield(_ index: Int) -> Bool {
        rest(index) { state in
            state.participants[index].rest = .calm
            return true
        }.othersRan
    }

    /// Lets another thread that has something to do go first, if that is chosen.
    func giveWay(_ index: Int) {
        rest(index) { state in
            guard !state.isEnding else { return false }
            state.participants[index].rest = .until(state.clock.now, wakeable: false)
            state.givesWay = index
            return true
        }
    }

    func wake(_ index: Int) {
        change { state in
            state.participants[index].isWoken = true
            state.endOutsideWait()
        }
    }

    /// Forgets a wake-up of the thread, which is awake already.
    func forgetWake(_ index: Int) {
        change { $0.participants[index].isWoken = false }
    }

    func wait(at latch: LatchState) -> WaitOutcome {
        RunLoop.installed?.callTakesTime()
        return rest(latch.index) { state in
            guard !latch.isOpen.load(ordering: .relaxed) else { return false }
            state.participants[latch.index].rest = .latch(latch)
            return true
        }.outcome
    }

    func open(_ latch: LatchState) {
        let next = change { state -> Turn? in
            latch.isOpen.store(true, ordering: .relaxed)
            guard case .latch(let current) = state.participants[latch.index].rest, current === latch else { return nil }
            // A thread outside of the simulation may open it; then no other thread passes on the turn.
            let isSomebodyAtWork =
                state.isActing || state.isWaitingOutside
                || state.living.contains {
                    if case .none = state.participants[$0].rest { true } else { false }
                }
            let turn = state.begin(latch.index, .woke)
            state.endOutsideWait()
            return isSomebodyAtWork ? nil : turn
        }
        next?.give()
    }

    /// - Returns: the reason why the rest ended, and whether another thread ran meanwhile.
    @discardableResult
    private func rest(_ index: Int, _ begin: (inout State) -> Bool) -> (outcome: WaitOutcome, othersRan: Bool) {
        let (first, own) = change { state -> (Turn?, Turn?) in
            guard begin(&state) else { return (nil, nil) }
            let own = state.participants[index].turn
            own.lastRest = state.clock.now
            return (state.chooseNext(), own)
        }
        guard let own else { return (.woke, false) }
        let next = act(first)
        guard next !== own else { return (own.outcome, false) }
        next?.give()
        own.take()
        return (own.outcome, true)
    }

    /// Performs the world's events before the next turn of a thread, and returns that turn.
    @inline(__always)
    private func act(_ turn: Turn?) -> Turn? {
        turn === worldsTurn ? actForWorld() : turn
    }

    @inline(never)
    private func actForWorld() -> Turn? {
        var next: Turn? = worldsTurn
        while next === worldsTurn {
            let (event, isWaitingOutside) = state.withLock { ($0.event.take(), $0.isWaitingOutside) }
            event?.keep()
            if isWaitingOutside { waitOutside() }
            next = change { state in
                (state.isActing, state.isWaitingOutside) = (false, false)
                return state.chooseNext()
            }
        }
        return next
    }

    // MARK: Descriptors

    func setWatch(_ index: Int, _ token: SourceToken, _ watch: (descriptor: Int32, events: DescriptorEvents)?) {
        state.withLock { state in
            state.participants[index].watches[token] = watch
            if state.participants[index].clockWatch?.token == token { state.participants[index].clockWatch = nil }
        }
    }

    /// The ready descriptors of a thread, by token.
    func takeReady(_ index: Int) -> [(SourceToken, DescriptorEvents)] {
        state.withLock { state in
            let ready = state.participants[index].ready
            guard let clock = state.participants[index].clockWatch, clock.wasSet else { return ready }
            state.participants[index].clockWatch!.wasSet = false
            return [(clock.token, .readable)] + ready
        }
    }

    // MARK: The wall clock

    /// Notifies the threads of a host that watch the wall clock that it was set.
    func wallClockWasSet(of host: Int) {
        change { state in
            for index in state.living where state.hosts[index] == host {
                state.participants[index].clockWatch?.wasSet = true
            }
        }
    }

    func watchWallClock(_ index: Int, _ token: SourceToken) {
        state.withLock { $0.participants[index].clockWatch = (token, false) }
    }

    // MARK: Events of the world

    /// Schedules an event at a date, or as soon as the running thread rests if the date has come. It runs on the thread
    /// that rests, and calls no user code.
    func schedule(
        at date: RunLoop.Instant, _ what: StaticString, from sender: String? = nil, on host: String,
        _ action: @escaping () -> Void
    ) -> Appointment {
        let appointment = Appointment(what, from: sender, host, action)
        let isTooLate = change { state in
            guard !state.isClosing else { return true }
            state.agenda.insert(appointment, at: date)
            state.nextEvent = min(state.nextEvent, date)
            return false
        }
        if isTooLate { appointment.callOff() }
        return appointment
    }
}
