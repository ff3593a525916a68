internal import Glibc
internal import RunLoopCore
internal import Synchronization

/// The virtual time that all loops of a simulation share, and the order in which their threads run.
///
/// Every loop has a thread, and exactly one thread runs at any moment; the others rest in a wait. When the running one
/// rests, the next is whoever has something to do first: those that were woken, then the earliest deadline, and among
/// equal deadlines the thread that was started first. Only then does the time move. What the world does by itself has its
/// own dates, and comes before the deadlines that are equal to them. So a simulation is exact, and the same in every run.
final class Timeline: Sendable {
    /// What a thread rests for.
    enum Rest {
        /// It runs, or will run when its turn comes.
        case none
        /// A deadline, or a wake-up unless the thread is at work.
        case until(RunLoop.Instant, wakeable: Bool)
        /// The moment when no other thread has anything to do.
        case calm
        /// The end of another thread.
        case join(Int)
        /// The moment when another thread opens the latch.
        case latch(LatchState)
        case ended
    }

    /// Lets a thread go on when its turn comes, and tells it why.
    private final class Turn: Sendable {
        private let handoff = Handoff()
        // Unsafe, but the thread reads it only after its turn was given to it, and until then nobody changes it again.
        nonisolated(unsafe) var outcome = WaitOutcome.woke
        /// When the thread has last come to rest.
        nonisolated(unsafe) var lastRest = RunLoop.Instant(nanoseconds: 0)

        func give() { handoff.signal() }
        func take() { handoff.wait() }
    }

    /// A latch, shared by those who use it. Its state changes under the lock.
    final class LatchState: Sendable {
        /// The thread that waits at it.
        let index: Int
        /// The thread that opens it, if that is one of the simulation's.
        let opener: Int
        /// Whether a thread of another world opens it. Then nobody can tell what may still happen.
        let isOutside: Bool
        fileprivate let isOpen = Atomic(false)
        /// Whether the thread has been told that nobody will open it.
        fileprivate let isTold = Atomic(false)

        init(index: Int, opener: Int, isOutside: Bool) {
            self.index = index
            self.opener = opener
            self.isOutside = isOutside
        }
    }

    private struct Participant {
        let name: String
        /// It only serves the others, so it is told last that nothing can happen any more.
        let isService: Bool
        let turn = Turn()
        var thread: pthread_t?
        var rest = Rest.none
        var isWoken = false
        var watches: [SourceToken: (descriptor: Int32, events: DescriptorEvents)] = [:]
        /// Who is told when the wall clock is set, and whether it was.
        var clockWatch: (token: SourceToken, wasSet: Bool)?

        /// What `poll` is asked for the watched descriptors.
        var requests: [pollfd] { watches.values.filter { !$0.events.isEmpty }.map(Self.request) }

        private static func request(_ watch: (descriptor: Int32, events: DescriptorEvents)) -> pollfd {
            let reading = watch.events.contains(.readable) ? Int16(POLLIN) : 0
            let writing = watch.events.contains(.writable) ? Int16(POLLOUT) : 0
            return pollfd(fd: watch.descriptor, events: reading | writing, revents: 0)
        }

        var hasReady: Bool { clockWatch?.wasSet == true || (!watches.isEmpty && !ready.isEmpty) }

        /// The watched descriptors that are ready now, by token.
        var ready: [(SourceToken, DescriptorEvents)] {
            guard !watches.isEmpty else { return [] }
            let watches = watches.sorted { $0.key.slot < $1.key.slot }
            var requests = watches.map { Self.request($0.value) }
            guard poll(&requests, nfds_t(requests.count), 0) > 0 else { return [] }
            return zip(watches, requests).compactMap { watch, request in
                var events: DescriptorEvents = []
                let failed = Int32(request.revents) & (POLLHUP | POLLERR) != 0
                if failed || Int32(request.revents) & POLLIN != 0 { events.insert(.readable) }
                if failed || Int32(request.revents) & POLLOUT != 0 { events.insert(.writable) }
                events.formIntersection(watch.value.events)
                return events.isEmpty ? nil : (watch.key, events)
            }
        }
    }

    /// What keeps the time where it is.
    private struct HeldTime {
        let number: Int
        /// The thread that holds it.
        let index: Int
        let what: String
        let limit: Duration
        /// For how long it was waited for, in real time.
        var waited = Duration.zero
    }

    /// The time. A thread that is alone moves it without the lock, any other under the lock; the thread whose turn it
    /// is reads it without.
    private final class Clock: Sendable {
        private let nanoseconds = Atomic<Int64>(0)

        var now: RunLoop.Instant {
            get { RunLoop.Instant(nanoseconds: nanoseconds.load(ordering: .acquiring)) }
            set { nanoseconds.store(newValue.nanoseconds, ordering: .releasing) }
        }
    }

    /// What a thread that waits is not to wait beyond: what lies later counts as never.
    private struct Horizon {
        let index: Int
        let date: RunLoop.Instant
    }

    private struct State {
        let clock: Clock
        /// Those of a thread are nested: the last one is in force.
        var horizons: [Horizon] = []
        /// When the simulation began to end.
        var closed: RunLoop.Instant?
        /// When the processes of hosts began to end.
        var closedHosts: [Int: RunLoop.Instant] = [:]
        var isClosing: Bool { closed != nil }
        /// Whether anything has begun to end.
        var isEnding = false

        // Mutating, because the whole of it would be copied for others.

        mutating func horizon(of index: Int) -> Int? {
            horizons.isEmpty ? nil : horizons.lastIndex { $0.index == index }
        }

        /// The moment before which a thread that is alone may wait without the lock.
        mutating func findSoloEnd() -> RunLoop.Instant {
            guard living.count == 1, !participants[living[0]].isWoken, !isEnding, holds.isEmpty else {
                return .distantPast
            }
            guard let horizon = horizon(of: living[0]) else { return nextEvent }
            let date = horizons[horizon].date
            return clock.now > date ? .distantPast : min(date, nextEvent)
        }

        /// Whose picture of the past a thread is in, and what it is called there unless it is the first one.
        func lane(of index: Int) -> (name: String, thread: String?) {
            let name = participants[index].name
            guard let machine = machines[hosts[index]] else { return (name, nil) }
            let prefix = hosts[index] == 0 ? "" : "\(machine)/"
            return (machine, name == machine || index == 0 ? nil : String(name.dropFirst(prefix.count)))
        }

        /// Something that was waited for may have come from outside.
        func endOutsideWait() {
            if isWaitingOutside { outside?.ring() }
        }

        /// When all that a thread belongs to began to end.
        @inline(never)
        mutating func endBegan(_ index: Int) -> RunLoop.Instant? { closed ?? closedHosts[hosts[index]] }

        var participants: [Participant] = []
        // Not a part of it, because who comes next is asked of all that live: what each of them lives and dies with,
        // and its loop, while it has one.
        var hosts: [Int] = []
        var loops: [UnownedReference<RunLoop>?] = []
        /// Those that have not ended, in the order in which they were started. Threads that have ended cost nothing.
        var living: [Int] = []
        /// The machines of hosts, by the numbers of these; without one, the test's own threads have lanes of their own.
        var machines: [String?] = [nil]
        var agenda = Agenda()
        /// Nothing on it happens before.
        var nextEvent = RunLoop.Instant.distantFuture
        /// What is done next of it, in the world's turn.
        var event: Appointment?
        /// It is the world's turn, on the thread that has rested last.
        var isActing = false
        let worldsTurn: Turn
        /// What keeps the time where it is, in the order in which it was taken.
        var holds: [HeldTime] = []
        /// How many there were.
        var holdCount = 0
        /// In its turn, the world waits for what is outside.
        var isWaitingOutside = false
        /// Made for the first hold.
        var outside: OutsideWait?
        var lines: [String] = []
        var escapes: [String] = []
    }

    private let isTraced: Bool
    /// Whether the history has what loops do.
    let recordsLoops: Bool
    let history = History()
    // Unsafe, but set before it has a thread, and the simulation outlives its threads.
    nonisolated(unsafe) unowned(unsafe) var simulation: Simulation!
    private let clock = Clock()
    /// The moment before which the running thread may wait without the lock: as long as it is the only thread and
    /// nobody has woken it, nothing else can happen before its deadline. Otherwise the beginning of time.
    private let soloEnd = Atomic(RunLoop.Instant.distantPast.nanoseconds)
    private let worldsTurn = Turn()
    private let state: Locked<State>

    init(isTraced: Bool, recordsLoops: Bool) {
        self.isTraced = isTraced
        self.recordsLoops = isTraced || recordsLoops
        state = Locked(State(clock: clock, worldsTurn: worldsTurn))
    }

    var now: RunLoop.Instant { clock.now }

    /// From now on the thread is told when nothing is left to happen until `date`. It holds nobody up: time goes beyond
    /// it while the thread works, or waits for another thread.
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
    private func change<Result>(_ body: (inout State) -> Result) -> Result {
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

    /// How many threads have not ended: all that is looked at when one rests.
    var livingCount: Int { state.withLock { $0.living.count } }

    /// Called first on a thread that was entered.
    func awaitTurn(_ index: Int) {
        state.withLock { state in
            state.participants[index].thread = pthread_self()
            return state.participants[index].turn
        }.take()
    }

    /// Called last on a thread.
    func leave(_ index: Int) {
        let next = change { state in
            end(index, &state)
            return Self.chooseNext(&state)
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
            state.closedHosts[host] = nil
            state.isEnding = state.isClosing || !state.closedHosts.isEmpty
        }
    }

    /// A number for threads that live and die together; those of 0 are the test's own.
    ///
    /// - Parameter machine: whose picture of the past they are in.
    func makeHost(on machine: String) -> Int {
        change { state in
            state.machines.append(machine)
            return state.machines.count - 1
        }
    }

    /// From now on the test's own threads are those of a host.
    func nameTest(_ name: String) {
        state.withLock { state in
            history.rename(state.lane(of: 0).name, to: name)
            state.machines[0] = name
        }
    }

    /// Ends the threads of a host where they are: none of them runs anything more. The system keeps them, at rest, so that
    /// what they hold stays. If the calling thread is one of them, the call does not return.
    func kill(host: Int) {
        let thread = pthread_self()
        let own = change { state -> (turn: Turn, next: Turn?)? in
            var own: Turn?
            for index in state.living where state.hosts[index] == host {
                let participant = state.participants[index]
                if case .none = participant.rest, participant.thread == thread { own = participant.turn }
                end(index, &state)
                state.horizons.removeAll { $0.index == index }
            }
            return own.map { ($0, Self.chooseNext(&state)) }
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
        rest(own) { state in
            if case .ended = state.participants[index].rest { return false }
            state.participants[own].rest = .join(index)
            // Nothing ends such a wait but the end that it is for, so a circle of them is told at once.
            var circle = [own]
            while case .join(let next) = state.participants[circle.last!].rest {
                if next == own { Self.fail(circle, state) }
                circle.append(next)
            }
            return true
        }
    }

    /// From now on every wait ends at once as starved, so that all threads can end. Waits until they have.
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
        while let other = state.withLock({ Self.firstAtWork($0, but: own) }) { join(other, from: own) }
    }

    /// From now on every wait of a host's threads ends at once as starved, so that they can end.
    func close(host: Int) {
        change { state in
            state.closedHosts[host] = state.closedHosts[host] ?? state.clock.now
            state.isEnding = true
        }
    }

    private static func firstAtWork(_ state: State, but own: Int) -> Int? {
        state.living.first { $0 != own }
    }

    // MARK: Waiting

    // MARK: The outside

    /// From now on the time stays where it is.
    ///
    /// - Returns: the number of the hold.
    func hold(_ index: Int, for what: String, _ limit: Duration) -> Int {
        change { state in
            state.holdCount += 1
            state.outside = state.outside ?? OutsideWait()
            if !state.isClosing {
                state.holds.append(HeldTime(number: state.holdCount, index: index, what: what, limit: limit))
            }
            return state.holdCount
        }
    }

    func releaseHold(_ number: Int) {
        change { state in
            state.holds.removeAll { $0.number == number }
            state.endOutsideWait()
        }
    }

    /// What keeps the time where it is.
    var heldFor: [String] { state.withLock { $0.holds.map(\.what) } }

    var isReproducible: Bool { state.withLock { $0.escapes.isEmpty && $0.holdCount == 0 } }

    /// Waits in real time until something of the outside has come for one of the threads, or a hold has had its time.
    private func waitOutside() {
        let (outside, requests, limit) = state.withLock { state in
            let waiting = state.living.filter {
                if case .until(_, wakeable: true) = state.participants[$0].rest { true } else { false }
            }
            let limits = state.holds.map { $0.limit - $0.waited }
            return (state.outside, waiting.flatMap { state.participants[$0].requests }, limits.min() ?? .zero)
        }
        let waited = outside!.wait(for: requests, atMost: limit)
        let givenUp = state.withLock { state in
            for index in state.holds.indices { state.holds[index].waited += waited }
            let givenUp = state.holds.filter { $0.waited >= $0.limit }
            state.holds.removeAll { $0.waited >= $0.limit }
            return givenUp
        }
        for hold in givenUp {
            noteEscape(to: hold.index) {
                "\($0) no longer waits for \(hold.what), after \(hold.limit) of real time, at \($1)"
            }
        }
    }

    /// How a loop's wait ended.
    enum WaitEnd {
        case woke
        case starved
        /// There is something to do, but the thread's horizon has passed.
        case late
        /// There may be something to do, but the simulation has ended, and since then work has taken time: with work
        /// that takes longer than until there is more of it, a loop would never come to an end.
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

    /// The thread works, and answers nobody, until the time gets there.
    func work(_ index: Int, until date: RunLoop.Instant) {
        rest(index) { state in
            guard date > state.clock.now else { return false }
            state.participants[index].rest = .until(date, wakeable: false)
            return true
        }
    }

    /// Lets the other threads do what there is to do now, without moving time.
    ///
    /// - Returns: whether any of them ran.
    func yield(_ index: Int) -> Bool {
        rest(index) { state in
            state.participants[index].rest = .calm
            return true
        }.othersRan
    }

    func wake(_ index: Int) {
        change { state in
            state.participants[index].isWoken = true
            state.endOutsideWait()
        }
    }

    /// The thread is awake already, and need not be woken again.
    func forgetWake(_ index: Int) {
        change { $0.participants[index].isWoken = false }
    }

    func wait(at latch: LatchState) -> WaitOutcome {
        rest(latch.index) { state in
            guard !latch.isOpen.load(ordering: .relaxed) else { return false }
            state.participants[latch.index].rest = .latch(latch)
            return true
        }.outcome
    }

    func open(_ latch: LatchState) {
        let next = change { state -> Turn? in
            latch.isOpen.store(true, ordering: .relaxed)
            guard case .latch(let current) = state.participants[latch.index].rest, current === latch else { return nil }
            // A thread outside of the simulation may open it; then nobody else hands on the turn.
            let isSomebodyAtWork =
                state.isActing || state.isWaitingOutside
                || state.living.contains {
                    if case .none = state.participants[$0].rest { true } else { false }
                }
            let turn = Self.begin(latch.index, &state, .woke)
            state.endOutsideWait()
            return isSomebodyAtWork ? nil : turn
        }
        next?.give()
    }

    /// - Returns: how the rest ended, and whether another thread ran meanwhile.
    @discardableResult
    private func rest(_ index: Int, _ begin: (inout State) -> Bool) -> (outcome: WaitOutcome, othersRan: Bool) {
        let (first, own) = change { state -> (Turn?, Turn?) in
            guard begin(&state) else { return (nil, nil) }
            let own = state.participants[index].turn
            own.lastRest = state.clock.now
            return (Self.chooseNext(&state), own)
        }
        guard let own else { return (.woke, false) }
        let next = act(first)
        guard next !== own else { return (own.outcome, false) }
        next?.give()
        own.take()
        return (own.outcome, true)
    }

    /// Does what the world does before the next turn of a thread, and tells whose that is.
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
                return Self.chooseNext(&state)
            }
        }
        return next
    }

    /// Chooses whose turn comes next, and moves the time there: that of a thread, or the world's; nobody's if a thread
    /// outside of the simulation is waited for.
    private static func chooseNext(_ state: inout State) -> Turn? {
        let never = RunLoop.Instant.distantFuture
        if state.nextEvent <= state.clock.now, let event = takeEvent(&state, until: state.clock.now) { return event }
        // The earliest deadline, and whose it is. One that never comes is nobody's.
        var (earliest, first) = (never, nil as Int?)
        var calm: Int?
        let isEnding = state.isEnding
        for index in state.living {
            switch state.participants[index].rest {
            case .none:
                return begin(index, &state, .woke)
            case .until(_, wakeable: true) where isEnding && state.endBegan(index) != nil:
                return begin(index, &state, .starved)
            case .until(_, wakeable: true)
            where state.participants[index].isWoken || state.participants[index].hasReady:
                state.participants[index].isWoken = false
                return begin(index, &state, .woke)
            case .until(let deadline, _):
                if deadline < earliest { (earliest, first) = (deadline, index) }
            case .calm:
                calm = calm ?? index
            case .join, .latch, .ended:
                continue
            }
        }
        if let calm, first == nil || earliest > state.clock.now { return begin(calm, &state, .woke) }
        if state.nextEvent != never { state.nextEvent = state.agenda.firstDate ?? never }
        let date = min(earliest, state.nextEvent)
        if !state.holds.isEmpty, date > state.clock.now {
            state.isWaitingOutside = true
            return state.worldsTurn
        }
        if date != never {
            if let limited = limited(&state, before: date) { return begin(limited, &state, .starved) }
            state.clock.now = max(state.clock.now, date)
            if date == state.nextEvent, let event = takeEvent(&state, until: date) { return event }
            return begin(first!, &state, .woke)
        }
        if waitsOutside(state) { return nil }
        // Nothing can ever happen any more. The first thread that can be told is told: first threads that are no
        // service, then those that wait for another thread in vain, then any.
        let sleepers = state.living.filter {
            if case .until(_, wakeable: true) = state.participants[$0].rest { true } else { false }
        }
        let starved =
            sleepers.first { !state.participants[$0].isService } ?? tellOfLatch(state) ?? sleepers.first
        guard let starved else { fail(state.living, state) }
        return begin(starved, &state, .starved)
    }

    /// - Returns: the world's turn, if something happens by then.
    private static func takeEvent(_ state: inout State, until date: RunLoop.Instant) -> Turn? {
        guard state.nextEvent <= date else { return nil }
        let appointment = state.agenda.takeFirst(until: date)
        state.nextEvent = state.agenda.firstDate ?? .distantFuture
        guard let appointment else { return nil }
        state.event = appointment
        state.isActing = true
        return state.worldsTurn
    }

    /// The first of the waiting threads whose horizon is before the date: nothing happens until then.
    private static func limited(_ state: inout State, before date: RunLoop.Instant) -> Int? {
        var first: Int?
        for index in state.horizons.indices.reversed() {
            let horizon = state.horizons[index]
            guard horizon.date < date, first.map({ horizon.date < state.horizons[$0].date }) ?? true,
                case .until(_, wakeable: true) = state.participants[horizon.index].rest
            else { continue }
            first = index
        }
        return first.map { state.horizons[$0].index }
    }

    /// Each of the threads waits for another one, for ever, and none of them can be told.
    private static func fail(_ threads: [Int], _ state: State) -> Never {
        func name(_ index: Int) -> String { quoted(state.participants[index].name) }
        let waits = threads.compactMap { index -> String? in
            switch state.participants[index].rest {
            case .join(let other): "\(name(index)) waits for the end of \(name(other))"
            case .latch(let latch): "\(name(index)) waits for a block that \(name(latch.opener)) is running"
            case .until: "\(name(index)) works for ever"
            case .none, .calm, .ended: nil
            }
        }
        fatalError(
            "threads of a simulation wait for one another and can never go on: \(waits.joined(separator: ", ")); let one of "
                + "them not wait")
    }

    /// Whether a thread waits for one outside of the simulation.
    private static func waitsOutside(_ state: State) -> Bool {
        state.living.contains {
            if case .latch(let latch) = state.participants[$0].rest { latch.isOutside } else { false }
        }
    }

    /// The first thread that waits at a latch and has not been told that nobody will open it.
    private static func tellOfLatch(_ state: State) -> Int? {
        state.living.first {
            guard case .latch(let latch) = state.participants[$0].rest else { return false }
            return !latch.isTold.exchange(true, ordering: .relaxed)
        }
    }

    private static func begin(_ index: Int, _ state: inout State, _ outcome: WaitOutcome) -> Turn {
        state.participants[index].rest = .none
        let turn = state.participants[index].turn
        turn.outcome = outcome
        return turn
    }

    // MARK: What has happened

    var lines: [String] { state.withLock { $0.lines } }

    /// The mode in which a loop sleeps while it has nothing to run.
    static let asleep = RunLoop.Mode("asleep")

    /// The loop of a thread begins.
    func add(_ loop: RunLoop) {
        guard let index = loop.virtualDriver?.index else { return }
        state.withLock { state in
            state.loops[index] = UnownedReference(loop)
        }
        guard recordsLoops else { return }
        loop.trace = { [unowned self, unowned loop] event in
            switch event {
            case .runBegan(Self.asleep), .runEnded(Self.asleep, _): break
            case .runBegan, .runEnded: writeLine(event.description, loop)
            case .called, .ignored:
                writeLine(event.description, loop)
                record(index) { .loop(event, thread: $0) }
            }
        }
    }

    /// A thread has no loop any more.
    func forgetLoop(_ index: Int) {
        state.withLock { $0.loops[index] = nil }
    }

    private func record(_ index: Int, _ what: (_ thread: String?) -> History.What) {
        let (lane, now) = state.withLock { ($0.lane(of: index), $0.clock.now) }
        history.record(what(lane.thread), in: lane.name, at: now)
    }

    private func writeLine(_ text: String, _ loop: RunLoop) {
        guard isTraced, let index = loop.virtualDriver?.index else { return }
        let mode = loop.currentMode?.name ?? "-"
        state.withLock { state in
            state.lines.append("\(state.clock.now) \(state.participants[index].name) \(mode) \(text)")
        }
    }

    private func writeLine(_ text: @autoclosure () -> String, of name: String) {
        guard isTraced else { return }
        let text = text()
        state.withLock { $0.lines.append("\($0.clock.now) \(name) - \(text)") }
    }

    /// Notes something that a thread says.
    func note(_ text: String, _ loop: RunLoop) {
        writeLine(text, loop)
        if let index = loop.virtualDriver?.index { record(index) { .note(text, thread: $0) } }
    }

    /// Notes something of a host, or of what is between hosts.
    func note(_ text: String, of name: String) {
        writeLine(text, of: name)
        history.record(.note(text, thread: nil), in: name, at: now)
    }

    /// Notes what has come from one host to another, or has not.
    func note(_ message: Simulation.Message, from sender: String, to receiver: String) {
        switch message {
        case .bytes(let count): writeLine("\(count) bytes from \(sender)", of: receiver)
        case .end: writeLine("end from \(sender)", of: receiver)
        case .lost(let count): writeLine("\(count) bytes to \(receiver) are lost", of: sender)
        }
        history.record(.message(message, from: sender), in: receiver, at: now)
    }

    /// A task has come back from outside of the simulation.
    /// - Parameter what: says it of the thread's name and the time.
    func noteEscape(to index: Int, _ what: (String, RunLoop.Instant) -> String) {
        let (name, escape) = state.withLock { state in
            let name = state.participants[index].name
            let escape = what(name, state.clock.now)
            state.escapes.append(escape)
            return (name, escape)
        }
        writeLine("escape: \(escape)", of: name)
        record(index) { .note("escape: \(escape)", thread: $0) }
    }

    var escapes: [String] { state.withLock { $0.escapes } }

    // MARK: How it stands

    /// A thread that has not ended.
    struct Stand {
        let index: Int
        let name: String
        let isService: Bool
        let rest: Rest
        /// Whether somebody has woken it.
        let isWoken: Bool
        /// Since when it has been at rest.
        let quietSince: RunLoop.Instant
        let loop: UnownedReference<RunLoop>?
    }

    /// The threads that have not ended, in the order in which they were started.
    var stands: [Stand] {
        state.withLock { state in
            state.living.map { index in
                let participant = state.participants[index]
                return Stand(
                    index: index, name: participant.name, isService: participant.isService, rest: participant.rest,
                    isWoken: participant.isWoken || participant.hasReady, quietSince: Self.quietSince(index, state),
                    loop: state.loops[index])
            }
        }
    }

    /// Since when a thread has been at rest; if it runs, since when it was before it was told that nothing can happen, or
    /// when it last woke.
    private static func quietSince(_ index: Int, _ state: State) -> RunLoop.Instant {
        let turn = state.participants[index].turn
        guard case .none = state.participants[index].rest, turn.outcome == .woke else { return turn.lastRest }
        return state.loops[index]?.with { $0.passTime } ?? turn.lastRest
    }

    /// The names of threads, also of those that have ended.
    func name(of index: Int) -> String { state.withLock { $0.participants[index].name } }

    /// What the world does next.
    var nextAppointment: (date: RunLoop.Instant, what: String)? {
        state.withLock { $0.agenda.next }
    }

    // MARK: Descriptors

    func setWatch(_ index: Int, _ token: SourceToken, _ watch: (descriptor: Int32, events: DescriptorEvents)?) {
        state.withLock { state in
            state.participants[index].watches[token] = watch
            if state.participants[index].clockWatch?.token == token { state.participants[index].clockWatch = nil }
        }
    }

    /// What is ready now for a thread, by token.
    func takeReady(_ index: Int) -> [(SourceToken, DescriptorEvents)] {
        state.withLock { state in
            let ready = state.participants[index].ready
            guard let clock = state.participants[index].clockWatch, clock.wasSet else { return ready }
            state.participants[index].clockWatch!.wasSet = false
            return [(clock.token, .readable)] + ready
        }
    }

    // MARK: The wall clock

    /// Tells those of a host who watch the wall clock that it was set.
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

    // MARK: What the world does

    /// Has something happen at a date, or as soon as the running thread rests if the date has come. It runs on the thread
    /// that rests, and calls no code of the user's.
    func schedule(
        at date: RunLoop.Instant, _ what: StaticString, on host: String, _ action: @escaping () -> Void
    ) -> Appointment {
        let appointment = Appointment(what, host, action)
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
