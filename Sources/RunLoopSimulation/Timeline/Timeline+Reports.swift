internal import RunLoopCore

extension Timeline {
    // MARK: Past events

    var lines: [String] { state.withLock { $0.lines } }

    /// The mode in which a loop sleeps while it has nothing to run.
    static let asleep = RunLoop.Mode("asleep")

    /// Adds the loop of a thread.
    func add(_ loop: RunLoop) {
        guard let index = loop.virtualDriver?.index else { return }
        state.withLock { state in
            state.loops[index] = UnownedReference(loop)
        }
        if let choices { loop.schedule = LoopChoices(choices, of: index, on: self) }
        guard recordsLoops else { return }
        loop.trace = { [unowned self, unowned loop] event in
            switch event {
            case .runBegan(Self.asleep), .runEnded(Self.asleep, _): break
            case .runBegan, .runEnded: writeLine(event.description, loop)
            case .called(let kind, let name, let origin, _):
                // The loop has counted the lateness of a fire just before the call.
                let lateness = loop.statistics.lateness.maximum
                latestFire.withLock { latest in
                    guard lateness > latest?.lateness ?? .zero else { return }
                    latest = (lateness, RunLoop.words(kind, name, origin))
                }
                fallthrough
            case .ignored:
                writeLine(event.description, loop)
                record(index) { .loop(event, thread: $0) }
            }
        }
    }

    /// Forgets the loop of a thread, which has none any more.
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

    /// Notes a text of a thread.
    func note(_ text: String, _ loop: RunLoop) {
        writeLine(text, loop)
        if let index = loop.virtualDriver?.index { record(index) { .note(text, thread: $0) } }
    }

    /// Notes an event of a host, or of a connection between hosts.
    func note(_ text: String, of name: String) {
        writeLine(text, of: name)
        history.record(.note(text, thread: nil), in: name, at: now)
    }

    /// Notes a message that has or has not come from one host to another.
    func note(_ message: HostMessage, from sender: String, to receiver: String) {
        switch message {
        case .bytes(let count): writeLine("\(count) bytes from \(sender)", of: receiver)
        case .end: writeLine("end from \(sender)", of: receiver)
        case .lost(let count): writeLine("\(count) bytes to \(receiver) are lost", of: sender)
        }
        history.record(.message(message, from: sender), in: receiver, at: now)
    }

    /// Notes that a task has come back from outside of the simulation.
    ///
    /// - Parameter what: makes the line from the thread's name and the time.
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

    // MARK: The standing

    /// A thread that has not ended.
    struct Stand {
        let index: Int
        let name: String
        let isService: Bool
        let rest: Rest
        /// Whether another thread has woken it.
        let isWoken: Bool
        /// The time since which it has been at rest.
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
                    isWoken: participant.isWoken || participant.hasReady, quietSince: Self.quietSince(index, &state),
                    loop: state.loops[index])
            }
        }
    }

    /// The time since which a thread has been at rest. For a running thread it is the time before the thread learned
    /// that nothing can happen, or the time when it last woke.
    private static func quietSince(_ index: Int, _ state: inout State) -> RunLoop.Instant {
        let turn = state.participants[index].turn
        guard case .none = state.participants[index].rest, turn.outcome == .woke else { return turn.lastRest }
        return state.loops[index]?.with { $0.passTime } ?? turn.lastRest
    }

    /// The name of a thread, even of one that has ended.
    func name(of index: Int) -> String { state.withLock { $0.participants[index].name } }

    /// The next event of the world.
    var nextAppointment: (date: RunLoop.Instant, what: String)? {
        state.withLock { $0.agenda.next }
    }
}
