internal import RunLoopCore
internal import Synchronization

extension Timeline {
    /// A hold that keeps the time where it is.
    struct HeldTime {
        let number: Int
        /// The thread that holds it.
        let index: Int
        let what: String
        let limit: Duration
        /// The length of the waits for it so far, in real time.
        var waited = Duration.zero
    }

    /// The time. A thread that is alone moves it without the lock, any other under the lock; the thread whose turn it
    /// is reads it without.
    final class Clock: Sendable {
        private let nanoseconds = Atomic<Int64>(0)

        var now: RunLoop.Instant {
            get { RunLoop.Instant(nanoseconds: nanoseconds.load(ordering: .acquiring)) }
            set { nanoseconds.store(newValue.nanoseconds, ordering: .releasing) }
        }
    }

    /// The limit of a thread's waits: later events count as never.
    struct Horizon {
        let index: Int
        let date: RunLoop.Instant
    }

    struct State {
        let clock: Clock
        /// The horizons of all threads. Those of one thread are nested: the last one is in force.
        var horizons: [Horizon] = []
        /// The time when the simulation began to end.
        var closed: RunLoop.Instant?
        /// The times when the processes of hosts began to end.
        var closedHosts: [Int: RunLoop.Instant] = [:]
        var isClosing: Bool { closed != nil }
        /// Whether anything has begun to end.
        var isEnding = false

        var participants: [Participant] = []
        // Not a part of `Participant`, because each choice of the next turn looks at all living threads: the host of
        // each thread, and its loop, while it has one.
        var hosts: [Int] = []
        var loops: [UnownedReference<RunLoop>?] = []
        /// The threads of the system that belong to hosts.
        var handles: [Int: [ThreadHandle]] = [:]
        /// The threads that have not ended, in the order in which they were started. Threads that have ended cost
        /// nothing.
        var living: [Int] = []
        /// The machines of hosts, by host number; without one, the test's own threads have lanes of their own.
        var machines: [String?] = [nil]
        var agenda = Agenda()
        /// The time before which nothing on the agenda happens.
        var nextEvent = RunLoop.Instant.distantFuture
        /// The next event of the agenda, in the world's turn.
        var event: Appointment?
        /// Whether it is the world's turn, on the thread that has rested last.
        var isActing = false
        let worldsTurn: Turn
        let choices: (any Choices)?
        /// The history that records unusual choices, in a simulation that is explored and traced.
        let history: History?
        let isExplored: Bool
        /// The running thread, while it asks whether it may continue.
        var givesWay: Int?
        /// The holds on the time, in the order in which they were taken.
        var holds: [HeldTime] = []
        /// The number of holds ever taken.
        var holdCount = 0
        /// Whether the world, in its turn, waits for an event from outside.
        var isWaitingOutside = false
        /// The wait for events from outside, made for the first hold.
        var outside: OutsideWait?
        var lines: [String] = []
        var escapes: [String] = []
        /// Whether something in the run does not follow from the seed.
        var differs = false

        // Mutating, because a nonmutating method would copy the whole state.

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

        /// The lane of a thread, and the thread's name in it unless it is the first one there.
        func lane(of index: Int) -> (name: String, thread: String?) {
            let name = participants[index].name
            guard let machine = machines[hosts[index]] else { return (name, nil) }
            let prefix = hosts[index] == 0 ? "" : "\(machine)/"
            return (machine, name == machine || index == 0 ? nil : String(name.dropFirst(prefix.count)))
        }

        /// Ends a wait for the outside, because an awaited event may have come.
        func endOutsideWait() {
            if isWaitingOutside { outside?.ring() }
        }

        /// The time when the simulation, or the host of a thread, began to end.
        @inline(never)
        mutating func endBegan(_ index: Int) -> RunLoop.Instant? { closed ?? closedHosts[hosts[index]] }

        // MARK: The next turn

        /// Chooses the next turn, and moves the time there: the turn of a thread, or of the world; `nil` if the
        /// simulation waits for a thread outside of it.
        mutating func chooseNext() -> Turn? {
            let usual = chooseUsual()
            return isExplored ? chooseOther(than: usual) : usual
        }

        /// Lets any thread that has something to do now go first, in an explored simulation; the thread that usually
        /// goes first has its turn later.
        @inline(never)
        private mutating func chooseOther(than usual: Turn?) -> Turn? {
            guard let usual, usual !== worldsTurn, usual.outcome == .woke, !isEnding, let choices else { return usual }
            let ready = living.filter { index in
                switch participants[index].rest {
                case .none: true
                case .until(let deadline, let wakeable):
                    deadline <= clock.now
                        || wakeable && (participants[index].isWoken || participants[index].hasReady)
                case .calm, .join, .latch, .ended: false
                }
            }
            // A thread that gives way would have continued.
            let place =
                givesWay.take().flatMap { ready.firstIndex(of: $0) }
                ?? ready.firstIndex { participants[$0].turn === usual }!
            let chosen = ready[choices.nextThread(of: ready, usual: place) { participants[$0].name }]
            if case .until(_, wakeable: true) = participants[chosen].rest { participants[chosen].isWoken = false }
            let lane = lane(of: chosen)
            noteDeparture("goes on", in: lane.name, lane.thread)
            return begin(chosen, .woke)
        }

        private mutating func noteDeparture(_ what: String, in lane: String, _ thread: String? = nil) {
            guard let history, let usual = choices?.lastDeparture else { return }
            let words = "\(what) ← instead of \(usual)"
            lines.append("\(clock.now) \(thread ?? lane) - \(words)")
            history.record(.note(words, thread: thread), in: lane, at: clock.now)
        }

        @inline(__always)
        private mutating func chooseUsual() -> Turn? {
            let never = RunLoop.Instant.distantFuture
            if nextEvent <= clock.now, let event = takeEvent(until: clock.now) { return event }
            // The earliest deadline, and its thread. A deadline that never comes belongs to no thread.
            var (earliest, first) = (never, nil as Int?)
            var calm: Int?
            let isEnding = isEnding
            for index in living {
                switch participants[index].rest {
                case .none:
                    return begin(index, .woke)
                case .until(_, wakeable: true) where isEnding && endBegan(index) != nil:
                    return begin(index, .starved)
                case .until(_, wakeable: true)
                where participants[index].isWoken || participants[index].hasReady:
                    participants[index].isWoken = false
                    return begin(index, .woke)
                case .until(let deadline, _):
                    if deadline < earliest { (earliest, first) = (deadline, index) }
                case .calm:
                    calm = calm ?? index
                case .join, .latch, .ended:
                    continue
                }
            }
            if let calm, first == nil || earliest > clock.now { return begin(calm, .woke) }
            if nextEvent != never { nextEvent = agenda.firstDate ?? never }
            let date = min(earliest, nextEvent)
            if !holds.isEmpty, date > clock.now {
                isWaitingOutside = true
                return worldsTurn
            }
            if date != never {
                if let limited = limited(before: date) { return begin(limited, .starved) }
                clock.now = max(clock.now, date)
                if date == nextEvent, let event = takeEvent(until: date) { return event }
                return begin(first!, .woke)
            }
            if waitsOutside() { return nil }
            // Nothing can ever happen again. The first thread that can learn of it does: first threads that are no
            // service, then those that wait for another thread in vain, then any.
            let sleepers = living.filter {
                if case .until(_, wakeable: true) = participants[$0].rest { true } else { false }
            }
            let starved =
                sleepers.first { !participants[$0].isService } ?? tellOfLatch() ?? sleepers.first
            guard let starved else { fail(living) }
            return begin(starved, .starved)
        }

        /// - Returns: the world's turn, if something happens by then.
        private mutating func takeEvent(until date: RunLoop.Instant) -> Turn? {
            guard nextEvent <= date else { return nil }
            let appointment =
                isExplored && !isEnding ? takeAnyEvent(until: date) : agenda.takeFirst(until: date)
            nextEvent = agenda.firstDate ?? .distantFuture
            guard let appointment else { return nil }
            event = appointment
            isActing = true
            return worldsTurn
        }

        @inline(never)
        private mutating func takeAnyEvent(until date: RunLoop.Instant) -> Appointment? {
            var isChosen = false
            let appointment = agenda.takeAny(until: date) { [choices] in
                isChosen = true
                return choices!.nextEvent(of: $0)
            }
            if isChosen, let appointment { noteDeparture("comes first", in: appointment.host) }
            return appointment
        }

        /// The waiting thread with the earliest horizon, if that is before the date of the next event.
        private mutating func limited(before date: RunLoop.Instant) -> Int? {
            var first: Int?
            for index in horizons.indices.reversed() {
                let horizon = horizons[index]
                guard horizon.date < date, first.map({ horizon.date < horizons[$0].date }) ?? true,
                    case .until(_, wakeable: true) = participants[horizon.index].rest
                else { continue }
                first = index
            }
            return first.map { horizons[$0].index }
        }

        /// Ends the process: each of the threads waits for another one, for ever, and none of the waits can be given
        /// up.
        mutating func fail(_ threads: [Int]) -> Never {
            func name(_ index: Int) -> String { quoted(participants[index].name) }
            let waits = threads.compactMap { index -> String? in
                switch participants[index].rest {
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

        /// Whether a thread waits for another thread outside of the simulation.
        private mutating func waitsOutside() -> Bool {
            living.contains {
                if case .latch(let latch) = participants[$0].rest { latch.isOutside } else { false }
            }
        }

        /// The first thread that waits at a latch and has not learned that nobody will open it.
        private mutating func tellOfLatch() -> Int? {
            living.first {
                guard case .latch(let latch) = participants[$0].rest else { return false }
                return !latch.isTold.exchange(true, ordering: .relaxed)
            }
        }

        mutating func begin(_ index: Int, _ outcome: WaitOutcome) -> Turn {
            participants[index].rest = .none
            let turn = participants[index].turn
            turn.outcome = outcome
            return turn
        }
    }
}
