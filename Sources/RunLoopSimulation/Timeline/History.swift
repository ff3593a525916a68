internal import RunLoopCore

/// What has happened last in a simulation, for a picture of it: the events of its threads and hosts, each in its lane.
///
/// It is a ring, and so costs the same however long the simulation runs. Words are found when somebody looks.
final class History: Sendable {
    /// Something that has happened.
    struct Event {
        let date: RunLoop.Instant
        /// The name of a host, or of one of the test's own threads.
        let lane: String
        let what: What

        /// Whether a picture tells of it.
        var hasRow: Bool {
            switch what {
            case .began, .ended: false
            case .note, .loop, .message: true
            }
        }
    }

    enum What {
        /// The lane begins: its host has a process from now on.
        case began
        case ended
        /// - thread: whose event it is, if not that of the lane's first thread.
        case note(String, thread: String?)
        case loop(RunLoop.TraceEvent, thread: String?)
        case message(HostMessage, from: String)
    }

    struct Lane {
        let name: String
        /// Whether it has a thread.
        var isAlive = false
    }

    private struct State {
        /// The lanes, in the order in which they came.
        var lanes: [Lane] = []
        /// The events; once it is full, the oldest is at `first`.
        var ring: [Event] = []
        var first = 0
        /// How many there were before that a picture would tell of.
        var forgotten = 0
    }

    private static let capacity = 256
    private let state = Locked(State())
    /// Is told of each event in a line.
    private let listener: (@Sendable (String) -> Void)?

    init(_ listener: (@Sendable (String) -> Void)? = nil) {
        self.listener = listener
    }

    private func record(_ event: Event, _ state: inout State) {
        if let listener { listener(event.line) }
        guard state.ring.count == Self.capacity else { return state.ring.append(event) }
        if state.ring[state.first].hasRow { state.forgotten += 1 }
        state.ring[state.first] = event
        state.first = (state.first + 1) % Self.capacity
    }

    func record(_ what: What, in lane: String, at date: RunLoop.Instant) {
        state.withLock { record(Event(date: date, lane: lane, what: what), &$0) }
    }

    /// A lane has its first thread, or has lost its last one.
    func setAlive(_ isAlive: Bool, _ lane: String, at date: RunLoop.Instant) {
        state.withLock { state in
            let index =
                state.lanes.firstIndex { $0.name == lane }
                ?? {
                    state.lanes.append(Lane(name: lane))
                    return state.lanes.count - 1
                }()
            guard state.lanes[index].isAlive != isAlive else { return }
            state.lanes[index].isAlive = isAlive
            record(Event(date: date, lane: lane, what: isAlive ? .began : .ended), &state)
        }
    }

    /// From now on the events of a lane are those of another name.
    func rename(_ lane: String, to name: String) {
        state.withLock { state in
            state.lanes = state.lanes.map { $0.name == lane ? Lane(name: name, isAlive: $0.isAlive) : $0 }
            if let listener { listener(Self.line(renaming: lane, to: name)) }
        }
    }

    /// The lanes, the events that are remembered, the first one first, and how many came before them.
    var contents: (lanes: [Lane], events: [Event], forgotten: Int) {
        state.withLock { state in
            (state.lanes, Array(state.ring[state.first...] + state.ring[..<state.first]), state.forgotten)
        }
    }
}

/// What has come from one host to another, or has not.
package enum HostMessage {
    case bytes(Int)
    case end
    /// Bytes that found no way; they are sent again.
    case lost(Int)
}
