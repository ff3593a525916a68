internal import Glibc
@_spi(Ports) internal import RunLoopCore

extension Timeline {
    // MARK: Past events

    /// The mode in which a loop sleeps while it has nothing to run.
    static let asleep = RunLoop.Mode("asleep")

    /// Adds the loop of a thread.
    func add(_ loop: RunLoop) {
        guard let thread = loop.virtualDriver?.thread else { return }
        state.withLock { _ in thread.loop = UnownedReference(loop) }
        if let schedule { loop.schedule = LoopSchedule(schedule, of: thread, on: self) }
        guard recordsLoops else { return }
        loop.addWatcher(LoopHistory(loop, thread, self))
    }

    /// Keeps an event of a thread's loop in the history.
    fileprivate func record(_ event: RunLoop.TraceEvent, of thread: Thread, in loop: RunLoop) {
        switch event {
        case .runBegan(Self.asleep), .runEnded(Self.asleep, _): break
        case .runBegan, .runEnded: writeLine(event.description, of: thread.name, in: loop)
        case .called(let kind, let name, let origin, _):
            // The loop has counted the lateness of a fire just before the call.
            let lateness = loop.statistics.lateness.maximum
            latestFire.withLock { latest in
                guard lateness > latest?.lateness ?? .zero else { return }
                latest = (lateness, kind.title(name, origin))
            }
            fallthrough
        case .ignored:
            writeLine(event.description, of: thread.name, in: loop)
            record(thread) { .loop(event, thread: $0) }
        }
    }

    func record(_ thread: Thread, _ what: (_ thread: String?) -> History.What) {
        takeLook()
        let (lane, name, now) = state.withLock { (thread.lane, thread.nameInLane, $0.clock.now) }
        history.record(what(name), in: lane, at: now)
    }

    func writeLine(_ text: @autoclosure () -> String, of name: String, in loop: RunLoop? = nil) {
        guard isTraced else { return }
        let (mode, text) = (loop?.currentMode?.name ?? "-", text())
        state.withLock { $0.lines.append("\($0.clock.now) \(name) \(mode) \(text)") }
    }

    func note(_ text: String, of name: String) {
        takeLook()
        writeLine(text, of: name)
        history.record(.note(text, thread: nil), in: name, at: now)
    }

    func note(_ step: String, ofTask name: String, on thread: Thread) {
        writeLine(step, of: name)
        let (owner, now) = state.withLock { (thread.lane, $0.clock.now) }
        history.record(.step(step, owner: owner), in: name, at: now)
    }

    /// Notes a task that continues forever after the end of its loop; the task rests from now on.
    func note(endless task: String, on thread: Thread) {
        note("\(task) continues after the end of its loop", of: thread.lane)
        let failure = Simulation.HostError(host: thread.lane, instant: now, error: EndlessTask(task: task))
        endlessTasks.withLock { $0.append(failure) }
        schedule?.endlessTask = "\(failure)"
    }

    // MARK: Looks and marks

    /// Takes the look if its position has come, while the lock is not held.
    func takeLook() {
        look?.take(lookAround)
    }

    func lookAround() -> [String] { state.withLock { $0.lookAround() } }

    func meet(_ mark: String, _ isMet: Bool) {
        knownMarks.withLock { $0.meet(mark, isMet) }
    }

    var marks: Simulation.Marks { knownMarks.withLock(\.self) }

    // MARK: The standing

    /// A thread that has not ended, and its state.
    struct Stand {
        let thread: Thread
        let rest: Rest
        /// `true` if another thread has woken this one.
        let isWoken: Bool
        /// The time since which the thread has been at rest.
        let quietSince: RunLoop.Instant
        let loop: UnownedReference<RunLoop>?
        /// Words for the lock that the thread waits for.
        private let lock: String?

        /// Words for the signal that the thread waits for.
        var awaitedWords: String { thread.awaitedWords(lock) }

        init(of thread: Thread, in state: inout State) {
            (self.thread, rest, loop, lock) = (thread, thread.rest, thread.loop, state.lock(of: thread))
            isWoken = thread.isRoused
            // A running thread rested before it learned that nothing can happen, or until it woke.
            if case .none = thread.rest, thread.outcome == .woke, let loop {
                quietSince = loop.with { $0.passTime }
            } else {
                quietSince = thread.lastRest
            }
        }
    }

    /// The threads that have not ended, in the order in which they were started.
    var stands: [Stand] { state.withLock { state in state.livingThreads.map { Stand(of: $0, in: &state) } } }
}

extension Timeline.State {
    /// Lists the threads that have not ended, in the order in which they were started, and their waits.
    mutating func lookAround() -> [String] {
        let now = clock.now
        return livingThreads.flatMap { thread -> [String] in
            let stand = Timeline.Stand(of: thread, in: &self)
            let tasks = schedule?.waitingTasks(on: thread.number) ?? []
            return ["\(thread.name) \(stand.words(at: now))"] + tasks.map { "  task \($0) can continue" }
                + stand.items.map { "  \($0)\($0.isReady ? ", ready" : "")" }
        }
    }
}

extension Timeline.Stand {
    /// The words for the rest of the thread.
    fileprivate func words(at now: RunLoop.Instant) -> String {
        switch rest {
        case .none: thread.system == pthread_self() ? "runs" : "can continue"
        case .until(let date, wakeable: false): date > now ? "works until \(date)" : "can continue"
        case .until where isWoken: "was woken"
        case .until(.distantFuture, _): "waits"
        case .until(let date, _): date > now ? "waits until \(date)" : "can continue"
        case .calm: "yields to the others"
        case .join(let other): "waits for the end of \(other.object.name)"
        case .latch(let latch): "waits for a block on \(latch.object.opener.name)"
        case .signal: "waits for \(awaitedWords)"
        case .ended: "has ended"
        }
    }
}

/// Keeps what a simulated loop does in the history of its timeline, beside a ``RunLoop/trace`` of the program.
private final class LoopHistory: LoopWatcher {
    let events = RunLoop.WatchedEvent.Groups.trace
    // The timeline's loops end before it does.
    private unowned let loop: RunLoop
    private unowned let timeline: Timeline
    private let thread: Timeline.Thread

    init(_ loop: RunLoop, _ thread: Timeline.Thread, _ timeline: Timeline) {
        (self.loop, self.thread, self.timeline) = (loop, thread, timeline)
    }

    func watch(_ event: RunLoop.WatchedEvent) {
        if case .traced(let event) = event { timeline.record(event, of: thread, in: loop) }
    }
}
