@_spi(Ports) public import RunLoopCore

extension Simulation {
    /// The state of a simulation whose threads have finished their present work. A `Sendable` value.
    public enum Standing: Sendable, Hashable {
        /// No thread has anything scheduled.
        case done
        /// Nothing happens until the given date, and then the event `next`; a date that has come means now.
        case idle(until: RunLoop.Instant, next: String)
        /// Nothing can ever happen again, but threads still wait: for timers of modes that do not run, or for events
        /// that nothing in the simulation will cause, such as the signal of a source or a connection to a listener.
        case stuck([Wait])
        /// Something has left the simulation, or entered it from outside: the simulation's ``escapes``. The run is not
        /// the same each time, and more may come.
        case escaped([String])
    }

    /// A wait of a thread. A `Sendable` value.
    public struct Wait: Sendable, Hashable, CustomStringConvertible {
        /// The name of the thread; `host/thread` on a host, and the host's name for its first thread.
        public let thread: String
        /// The awaited item or event, for example `source (App/main.swift:6) in default`.
        public let what: String
        /// The place where the awaited item was made; `nil` if the wait is for another thread.
        public let origin: RunLoop.Origin?
        /// The time since which the thread has been at rest. For the calling thread, the last time it rested before
        /// learning that nothing can happen; otherwise the time when it last woke.
        public let since: RunLoop.Instant

        /// `true` for the wait of a task; the waits of timers and sources may last forever.
        @_spi(Ports) public let isOfTask: Bool

        /// Creates a wait from its parts.
        @_spi(Ports) public init(
            thread: String, what: String, origin: RunLoop.Origin? = nil, since: RunLoop.Instant, isOfTask: Bool
        ) {
            (self.thread, self.what, self.origin, self.since) = (thread, what, origin, since)
            self.isOfTask = isOfTask
        }

        /// For example `main has waited since 2.500000000 for source (App/main.swift:6) in default`.
        public var description: String { "\(thread) has waited since \(since) for \(what)" }
    }

    /// The standing of the simulation, over all its threads and hosts, as ``runUntilIdle(limit:)`` returns it; its
    /// description says why nothing continues. In a handler, the event of the call still counts as pending. Read on a
    /// thread of the simulation; O(n log n) in the number of scheduled items.
    public var standing: Standing {
        let escapes = escapes
        if !escapes.isEmpty { return .escaped(escapes) }
        if let next { return .idle(until: next.date, next: next.what) }
        let waits = waits
        return waits.isEmpty ? .done : .stuck(waits)
    }

    /// The items and events that all threads and hosts of the simulation wait for, in the order in which the threads
    /// were started; threads that only serve others, such as those of a pool, are left out. Read on a thread of the
    /// simulation; O(n log n).
    public var waits: [Wait] {
        let stands = timeline.stands.filter { !$0.thread.isService || $0.thread.isBlocked }
        return stands.flatMap { stand -> [Wait] in
            func wait(for what: String, _ origin: RunLoop.Origin? = nil, isOfTask: Bool = false) -> Wait {
                Wait(thread: stand.thread.name, what: what, origin: origin, since: stand.quietSince, isOfTask: isOfTask)
            }
            let items = (stand.thread.isService ? [] : stand.items).map {
                wait(for: $0.description, $0.origin, isOfTask: $0.kind == .task)
            }
            return switch stand.rest {
            case .join(let other): items + [wait(for: "the end of \(other.object.name)")]
            case .latch(let latch) where latch.object.isOutside:
                items + [wait(for: "a block on a thread outside of the simulation")]
            case .latch(let latch): items + [wait(for: "a block on \(latch.object.opener.name)")]
            case .signal: items + [wait(for: stand.awaitedWords, isOfTask: true)]
            case .none, .until, .calm, .ended: items
            }
        } + furtherWaits.withLock(\.self).flatMap { $0() }
    }

    /// The next event, if any.
    private var next: (date: RunLoop.Instant, what: String)? {
        let (own, now) = (place.thread, now)
        let nexts = timeline.stands.compactMap { stand -> (date: RunLoop.Instant, what: String)? in
            stand.thread === own ? stand.nextOfRunning(at: now) : stand.nextOfResting(at: now)
        }
        // Of events with equal dates, the world's comes first.
        let (ofWorld, holds) = timeline.state.withLock { ($0.agenda.next, $0.holds.compactMap(\.what)) }
        let held = holds.map { (date: now, what: "\($0), in real time") }
        let all = [ofWorld].compactMap { $0 } + nexts + held
        return all.min { $0.date < $1.date }.map { (max($0.date, now), $0.what) }
    }
}

extension Timeline.Stand {
    private var dump: RunLoop.Dump? { loop?.with { $0.hasEnded ? nil : $0.dumpAtRest() } }

    /// The items of the loop, except the ones that the simulation adds to make it sleep.
    var items: [RunLoop.Dump.Item] {
        dump?.items.filter { $0.keepsAlive && $0.modes != [Timeline.asleep] } ?? []
    }

    /// The next event of the calling thread, in the default mode if its loop does not run.
    fileprivate func nextOfRunning(at now: RunLoop.Instant) -> (date: RunLoop.Instant, what: String)? {
        let mode = dump?.runs.last ?? .default
        let items = items.filter { $0.isIn(mode) }
        if let ready = items.first(where: \.isReady) { return (now, words(ready)) }
        if isWoken || loop?.with({ $0.hasMail }) == true { return (now, "\(thread.name) has been woken") }
        guard let first = items.first, let deadline = first.deadline else { return nil }
        return (deadline, words(first))
    }

    fileprivate func nextOfResting(at now: RunLoop.Instant) -> (date: RunLoop.Instant, what: String)? {
        switch rest {
        case .none, .calm: return (now, "\(thread.name) has its turn")
        case .until(_, wakeable: true) where isWoken: return (now, "\(thread.name) has been woken")
        case .until(.distantFuture, _), .join, .latch, .signal, .ended: return nil
        case .until(let date, wakeable: false): return (date, "\(thread.name) has done its work")
        case .until(let date, wakeable: true):
            let mode = dump?.runs.last
            let item = items.first { item in item.deadline == date && mode.map { item.isIn($0) } == true }
            return (date, item.map(words) ?? "a run of \(thread.name) reaches its limit")
        }
    }

    private func words(_ item: RunLoop.Dump.Item) -> String {
        // The place of a sleep is not in the user's code.
        let what = item.kind == .sleep ? "a sleep" : item.kind.title(item.name, item.origin)
        return "\(what) of \(thread.name)"
    }
}

extension Simulation.Standing: CustomStringConvertible {
    /// For example `idle until 12.000000000: timer "poll" (App/main.swift:3) of main`. Each wait and each escape has a
    /// line.
    public var description: String {
        switch self {
        case .done: "done"
        case .idle(let date, let next): "idle until \(date): \(next)"
        case .stuck(let waits): "stuck:" + waits.map { "\n  \($0)" }.joined()
        case .escaped(let escapes): "escaped:" + escapes.map { "\n  \($0)" }.joined()
        }
    }
}
