@_spi(Ports) internal import RunLoopCore
internal import Synchronization

extension Timeline {
    /// A hold that keeps the time where it is.
    struct HeldTime {
        let number: Int
        let thread: Thread
        let what: String?
        let limit: Duration
        /// The real time waited for the hold so far.
        var waited = Duration.zero
    }

    /// The virtual time. A thread that is alone moves it without the lock, any other under the lock; the thread whose
    /// turn it is reads it without.
    final class Clock: Sendable {
        private let nanoseconds = Atomic<Int64>(0)

        var now: RunLoop.Instant {
            get { RunLoop.Instant(nanoseconds: nanoseconds.load(ordering: .acquiring)) }
            set { nanoseconds.store(newValue.nanoseconds, ordering: .releasing) }
        }
    }

    /// The next turn.
    enum Next {
        case thread(Thread)
        /// The turn of the world around the threads, taken by the thread that has most recently come to rest.
        case world
        /// No turn: the simulation waits for a thread outside.
        case nobody
    }

    struct State {
        let clock: Clock
        /// The limits of threads' waits: later events count as never. The limits of one thread are nested, and the last
        /// is in force.
        var horizons: [(thread: Thread, date: RunLoop.Instant)] = []
        /// The time when the simulation began to end.
        var closed: RunLoop.Instant?
        /// The number of processes that have begun to end and still have threads.
        var endingProcesses = 0
        /// `true` once anything has begun to end.
        var isEnding = false

        /// The threads that have not ended, in the order in which they were started. Each thread is retained from its
        /// start to its end, and costs nothing afterwards.
        // Unmanaged, because each choice of the next turn looks at all of them: see `Thread`.
        var living: [Unmanaged<Thread>] = []

        var livingThreads: [Thread] { living.map { $0.takeUnretainedValue() } }
        /// The number of threads ever started.
        var threadCount = 0
        /// The names of threads that were ended where they were, and never release their locks, by the locks' numbers.
        var endedThreads: [Int32: String] = [:]
        /// The threads whose end in the system has not been awaited yet.
        var unjoinedThreads: [Thread] = []
        var agenda = Agenda()
        /// The time before which nothing on the agenda happens.
        var nextEvent = RunLoop.Instant.distantFuture
        /// The next event of the agenda, in the world's turn.
        var event: Appointment?
        /// `true` during the world's turn, on the thread that has most recently come to rest.
        var isActing = false
        let schedule: Schedule?
        let look: Look?
        /// The history that records unusual choices, in a traced simulation.
        let history: History?
        /// The running thread, while it asks whether it may continue.
        var givesWay: Thread?
        /// The threads that rest at a place within a handler. Other threads of their processes wait until they have
        /// continued.
        var withinHandlers: [Thread] = []
        /// The holds on the time, in the order in which they were taken.
        var holds: [HeldTime] = []
        /// The number of holds ever taken.
        var holdCount = 0
        /// The real time for which the simulation still waits outside if its first thread is blocked and nothing else
        /// can happen.
        var patience: Duration
        /// `true` once the time has been held for something outside.
        var hasBeenHeld = false
        /// `true` while the world, in its turn, waits for an event from outside.
        var isWaitingOutside = false
        /// The wait for events from outside, created with the first hold.
        var outside: OutsideWait?
        var lines: [String] = []
        var escapes: [String] = []
        /// The escapes reported so far, without their times and places: each is reported once.
        var knownEscapes: Set<String> = []

        // Mutating, because a nonmutating method would copy the whole state.

        mutating func horizon(of thread: Thread) -> Int? {
            horizons.isEmpty ? nil : horizons.lastIndex { $0.thread === thread }
        }

        /// The moment before which a thread that is alone may wait without the lock.
        mutating func findSoloEnd() -> RunLoop.Instant {
            guard living.count == 1, !isEnding, holds.isEmpty, !living[0]._withUnsafeGuaranteedRef({ $0.isWoken })
            else { return .distantPast }
            guard !horizons.isEmpty, let horizon = horizon(of: livingThreads[0]) else { return nextEvent }
            let date = horizons[horizon].date
            return clock.now > date ? .distantPast : min(date, nextEvent)
        }

        /// Ends a wait for the outside, because an awaited event may have come.
        func endOutsideWait() {
            if isWaitingOutside { outside?.ring() }
        }

        /// The time when the simulation, or the process of a thread, began to end.
        @inline(never)
        mutating func endBegan(_ thread: Thread) -> RunLoop.Instant? { closed ?? thread.process.ending }

        // MARK: The next turn

        /// Chooses the next turn, and moves the time there.
        mutating func chooseNext() -> Next {
            guard schedule != nil else { return chooseUsual() }
            if isEnding, let thread = withinHandlers.first { return begin(thread, .woke) }
            return chooseOther(than: chooseUsual())
        }

        /// In an explored simulation, lets any thread that has something to do now go first; the thread that usually
        /// goes first has its turn later.
        @inline(never)
        private mutating func chooseOther(than usual: Next) -> Next {
            guard case .thread(let first) = usual, first.outcome == .woke, !isEnding, let schedule else { return usual }
            let ready = livingThreads.filter { isReady($0) && !isHeldUp($0) }
            // A thread that gives way would have continued, and one within a handler continues before others of its
            // process.
            let place =
                givesWay.take().flatMap { thread in ready.firstIndex { $0 === thread } }
                ?? ready.firstIndex { $0 === first }
                ?? ready.firstIndex { $0.process === first.process }!
            look?.take { lookAround() }
            let chosen = schedule.nextThread(of: ready.map { turn(of: $0) }, usual: place)
            return begin(chosen: ready[chosen])
        }

        private mutating func begin(chosen: Thread) -> Next {
            if chosen.isWaiting { chosen.isWoken = false }
            noteDeparture("continues", in: chosen.lane, chosen.nameInLane)
            return begin(chosen, .woke)
        }

        /// Returns `true` if a thread has something to do now.
        private mutating func isReady(_ thread: Thread) -> Bool {
            switch thread.rest {
            case .none: true
            case .until(let deadline, let wakeable): deadline <= clock.now || wakeable && thread.isRoused
            case .calm, .join, .latch, .signal, .ended: false
            }
        }

        /// Returns `true` if another thread of the same process is within a handler.
        private mutating func isHeldUp(_ thread: Thread) -> Bool {
            !withinHandlers.isEmpty && !withinHandlers.contains { $0 === thread }
                && withinHandlers.contains { $0.process === thread.process }
        }

        private mutating func turn(of thread: Thread) -> Schedule.ReadyThread {
            let reason: Schedule.ReadyThread.Reason =
                switch thread.rest {
                case .until(_, wakeable: false): .end
                case .until where !thread.isRoused: .date
                default: .wake
                }
            return Schedule.ReadyThread(
                number: thread.number, name: thread.name, machine: thread.process.machine, reason: reason)
        }

        /// Lets a thread of another process go first, in the middle of a handler, if one that has something to do is
        /// chosen.
        mutating func chooseOther(within thread: Thread, at place: String) -> Next? {
            guard !isEnding, let schedule else { return nil }
            let others = livingThreads.filter { $0.process !== thread.process && isReady($0) && !isHeldUp($0) }
            guard !others.isEmpty else { return nil }
            look?.take { lookAround() }
            guard
                let choice = schedule.goesFirst(
                    others.map { turn(of: $0) }, before: (thread.number, thread.name), place)
            else { return nil }
            return begin(chosen: others[choice])
        }

        private mutating func noteDeparture(_ what: String, in lane: String, _ thread: String? = nil) {
            guard let history, let usual = schedule?.lastDeparture else { return }
            let words = "\(what) ← instead of \(usual)"
            lines.append("\(clock.now) \(thread ?? lane) - \(words)")
            history.record(.note(words, thread: thread), in: lane, at: clock.now)
        }

        @inline(__always)
        private mutating func chooseUsual() -> Next {
            let never = RunLoop.Instant.distantFuture
            if nextEvent <= clock.now, takeEvent(until: clock.now) { return .world }
            // The earliest deadline, and its thread. A deadline that never comes belongs to no thread.
            var (earliest, first) = (never, nil as Unmanaged<Thread>?)
            var calm: Unmanaged<Thread>?
            let isEnding = isEnding
            for thread in living {
                switch thread._withUnsafeGuaranteedRef({ $0.rest }) {
                case .none:
                    return begin(thread, .woke)
                case .until(_, wakeable: true) where isEnding && endBegan(thread.takeUnretainedValue()) != nil:
                    return begin(thread, .starved)
                case .until(_, wakeable: true) where thread._withUnsafeGuaranteedRef({ $0.isRoused }):
                    thread._withUnsafeGuaranteedRef { $0.isWoken = false }
                    return begin(thread, .woke)
                case .until(let deadline, _):
                    if deadline < earliest { (earliest, first) = (deadline, thread) }
                case .calm:
                    calm = calm ?? thread
                case .join, .latch, .signal, .ended:
                    continue
                }
            }
            if let calm, first == nil || earliest > clock.now { return begin(calm, .woke) }
            if nextEvent != never { nextEvent = agenda.firstDate ?? never }
            let date = min(earliest, nextEvent)
            if !holds.isEmpty, date > clock.now {
                isWaitingOutside = true
                return .world
            }
            if date != never {
                if let limited = limited(before: date) { return begin(limited, .starved) }
                clock.now = max(clock.now, date)
                if date == nextEvent, takeEvent(until: date) { return .world }
                return begin(first!, .woke)
            }
            if waitsOutside() { return .nobody }
            // Nothing can ever happen again. The first thread that can learn of it does: first threads that are no
            // service, then threads that wait for another one in vain, then any.
            let threads = livingThreads
            if let blocked = threads.first(where: { $0.isBlocked && endBegan($0) != nil }) {
                return begin(blocked, .starved)
            }
            // No thread could learn of it. A thread outside may still end the wait.
            if threads[0].isBlocked, patience > .zero {
                isWaitingOutside = true
                return .world
            }
            let sleepers = threads.filter(\.isWaiting)
            let starved = sleepers.first { !$0.isService } ?? tellOfLatch() ?? sleepers.first
            guard let starved else { fail(threads) }
            return begin(starved, .starved)
        }

        /// - Returns: `true` if an event happens by `date`, so that it is the world's turn.
        private mutating func takeEvent(until date: RunLoop.Instant) -> Bool {
            guard nextEvent <= date else { return false }
            event = schedule != nil && !isEnding ? takeAnyEvent(until: date) : agenda.takeFirst(until: date)
            nextEvent = agenda.firstDate ?? .distantFuture
            isActing = event != nil
            return isActing
        }

        @inline(never)
        private mutating func takeAnyEvent(until date: RunLoop.Instant) -> Appointment? {
            var isChosen = false
            look?.take { lookAround() }
            let appointment = agenda.takeAny(until: date) { [schedule] in
                isChosen = true
                return schedule!.nextEvent(of: $0)
            }
            if isChosen, let appointment { noteDeparture("comes first", in: appointment.host) }
            return appointment
        }

        /// The waiting thread with the earliest horizon, if the horizon comes before the date of the next event.
        private mutating func limited(before date: RunLoop.Instant) -> Thread? {
            var first: (thread: Thread, date: RunLoop.Instant)?
            for horizon in horizons.reversed() where horizon.date < min(date, first?.date ?? .distantFuture) {
                if horizon.thread.isWaiting { first = horizon }
            }
            return first?.thread
        }

        /// Ends the process of the program: each of the threads waits for another one forever, and none of the waits
        /// can be given up.
        mutating func fail(_ threads: [Thread]) -> Never {
            let waits = threads.compactMap { thread -> String? in
                let name = quoted(thread.name)
                return switch thread.rest {
                case .join(let other): "\(name) waits for the end of \(quoted(other.object.name))"
                case .latch(let latch): "\(name) waits for a block that \(quoted(latch.object.opener.name)) is running"
                case .signal: "\(name) waits for \(thread.awaitedWords(lock(of: thread)))"
                case .until: "\(name) works for ever"
                case .none, .calm, .ended: nil
                }
            }
            fatalError(
                "threads of a simulation wait for one another and can never go on: \(waits.joined(separator: ", ")); "
                    + "remove one of these waits")
        }

        /// Returns `true` if a thread waits for another thread outside the simulation.
        private mutating func waitsOutside() -> Bool {
            livingThreads.contains {
                if case .latch(let latch) = $0.rest { latch.object.isOutside } else { false }
            }
        }

        /// Returns the first thread that waits at a latch and has not learned that it will never open.
        private mutating func tellOfLatch() -> Thread? {
            livingThreads.first {
                guard case .latch(let latch) = $0.rest else { return false }
                return !latch.object.isTold.exchange(true, ordering: .relaxed)
            }
        }

        private mutating func begin(_ thread: Unmanaged<Thread>, _ outcome: WaitOutcome) -> Next {
            begin(thread.takeUnretainedValue(), outcome)
        }

        private mutating func begin(_ thread: Thread, _ outcome: WaitOutcome) -> Next {
            thread.begin(outcome)
            return .thread(thread)
        }
    }
}
