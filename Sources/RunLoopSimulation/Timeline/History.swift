@_spi(Ports) internal import RunLoopCore

/// The last events of a simulation's threads and hosts, each in its lane, from which a picture is drawn.
///
/// The history is a ring, which costs the same however long the simulation runs. Words are made when they are read.
final class History: Sendable {
    /// A past event.
    struct Event {
        let date: RunLoop.Instant
        /// The name of a host, or of one of the test's own threads.
        var lane: String
        let what: What
    }

    enum What {
        /// The lane begins because its host now has a process.
        case began
        case ended
        ///   - thread: the thread of the event, if not the first thread of the lane.
        case note(String, thread: String?)
        ///   - owner: the lane of the thread on which the task runs.
        case step(String, owner: String)
        case loop(RunLoop.TraceEvent, thread: String?)
        ///   - text: the beginning of the message, if the message is recorded and is text.
        case message(HostMessage, from: String, text: String?)
    }

    struct Lane {
        var name: String
        /// `true` while the lane has a thread.
        var isAlive = false
        /// `true` if the lane had a thread before the first remembered event.
        var wasAlive = false
    }

    private struct State {
        /// The lanes, in the order of their appearance.
        var lanes: [Lane] = []
        /// The events; once the ring is full, the oldest is at `first`.
        var ring: [Event] = []
        var first = 0
        /// The number of earlier events that a picture would show.
        var forgotten = 0
    }

    private static let capacity = 256
    private let state = Locked(State())
    /// Receives each event.
    let listener: (@Sendable (TracedEvent) -> Void)?

    init(_ listener: (@Sendable (TracedEvent) -> Void)?) {
        self.listener = listener
    }

    private func record(_ event: Event, _ state: inout State) {
        if let listener { listener(TracedEvent(event)) }
        guard state.ring.count == Self.capacity else { return state.ring.append(event) }
        forget(state.ring[state.first], &state)
        state.ring[state.first] = event
        state.first = (state.first + 1) % Self.capacity
    }

    private func forget(_ event: Event, _ state: inout State) {
        let wasAlive: Bool
        switch event.what {
        case .began: wasAlive = true
        case .ended: wasAlive = false
        case .note, .step, .loop, .message: return state.forgotten += 1
        }
        guard let index = state.lanes.firstIndex(where: { $0.name == event.lane }) else { return }
        state.lanes[index].wasAlive = wasAlive
    }

    func record(_ what: What, in lane: String, at date: RunLoop.Instant) {
        state.withLock { record(Event(date: date, lane: lane, what: what), &$0) }
    }

    /// Records that a lane has its first thread, or has lost its last one.
    func setAlive(_ isAlive: Bool, _ lane: String, at date: RunLoop.Instant) {
        state.withLock { state in
            let index = state.lanes.firstIndex { $0.name == lane } ?? state.lanes.endIndex
            if index == state.lanes.endIndex { state.lanes.append(Lane(name: lane)) }
            guard state.lanes[index].isAlive != isAlive else { return }
            state.lanes[index].isAlive = isAlive
            record(Event(date: date, lane: lane, what: isAlive ? .began : .ended), &state)
        }
    }

    /// Renames a lane. O(n) in the number of remembered events.
    func rename(_ lane: String, to name: String, at date: RunLoop.Instant) {
        state.withLock { state in
            if let index = state.lanes.firstIndex(where: { $0.name == lane }) { state.lanes[index].name = name }
            for index in state.ring.indices where state.ring[index].lane == lane { state.ring[index].lane = name }
            listener?(TracedEvent(date: date, lane: lane, kind: .renamed(name)))
        }
    }

    /// The lanes, the remembered events, the oldest first, and the number of earlier events.
    var contents: (lanes: [Lane], events: [Event], forgotten: Int) {
        state.withLock { state in
            (state.lanes, Array(state.ring[state.first...] + state.ring[..<state.first]), state.forgotten)
        }
    }
}
