/// What both pictures show, worked out once from the scenario and its events.
struct Timeline {
    struct Span {
        var start: Int64
        var end: Int64
    }

    /// A nested run; depth 1 is directly in the main run.
    struct Band {
        var mode: String
        var depth: Int
        var span: Span
    }

    enum Look { case onTime, late, manual }

    struct Fire {
        var t: Int64
        var due: Int64
        var count: Int
        var look: Look
    }

    /// Grid points without a fire of their own.
    struct Points {
        var first: Int64
        var step: Int64
        var count: Int64

        var last: Int64 { first + (count - 1) * step }

        /// The points, but none closer than that: a thousand circles in one place are one circle.
        func thinned(to distance: Int64) -> StrideThrough<Int64> {
            let every = max(1, distance / step) * step
            return stride(from: first, through: last, by: Int(every))
        }
    }

    /// The invalidation of a timer, or the end of its target.
    struct Mark {
        var t: Int64
        var isDeinit: Bool
    }

    struct Lane {
        var name: String
        var timer: Scenario.TimerEntry?
        var fires: [Fire] = []
        var missed: [Points] = []
        var marks: [Mark] = []
        var busy: [Span] = []
    }

    private(set) var length: Int64
    private(set) var bands: [Band] = []
    private(set) var busy: [Span] = []
    private(set) var lanes: [Lane]

    init(scenario: Scenario, events: [ScenarioEvent]) {
        length = max(scenario.duration, events.map(\.t).max() ?? 0, 1)
        lanes = scenario.timers.map { Lane(name: $0.name, timer: $0) }
        // Begin and end are paired within a thread, innermost first.
        var runs: [String?: [Int]] = [:]
        var works: [String?: [Int]] = [:]
        for event in events {
            switch event.kind {
            case .fire(let name, let count, _, let due, let missed, let manual):
                let fire = Fire(t: event.t, due: due, count: count, look: manual ? .manual : .onTime)
                add(fire, missed: missed, lane: lane(name))
            case .invalidated(let name): lanes[lane(name)].marks.append(Mark(t: event.t, isDeinit: false))
            case .deinit(let name): lanes[lane(target: name)].marks.append(Mark(t: event.t, isDeinit: true))
            case .runBegin(let mode):
                let depth = runs[event.thread, default: []].count + 1
                runs[event.thread, default: []].append(bands.count)
                bands.append(Band(mode: mode, depth: depth, span: Span(start: event.t, end: length)))
            case .runEnd: if let run = runs[event.thread]?.popLast() { bands[run].span.end = event.t }
            case .busyBegin:
                works[event.thread, default: []].append(busy.count)
                busy.append(Span(start: event.t, end: length))
            case .busyEnd: if let work = works[event.thread]?.popLast() { busy[work].end = event.t }
            case .end: break
            }
        }
        let moved = Set(
            scenario.actions.compactMap { action -> String? in
                guard case .setFireDate(let timer, _) = action.verb else { return nil }
                return timer
            })
        for index in lanes.indices { addStarved(index, moved: moved, end: events.last?.t ?? -1) }
    }

    private mutating func lane(_ name: String) -> Int { lane(name) { $0.name == name } }

    private mutating func lane(target name: String) -> Int { lane(name) { $0.timer?.target?.name == name } }

    /// A name that the scenario does not have gets a lane of its own.
    private mutating func lane(_ name: String, where matches: (Lane) -> Bool) -> Int {
        if let index = lanes.firstIndex(where: matches) ?? lanes.firstIndex(where: { $0.name == name }) { return index }
        lanes.append(Lane(name: name))
        return lanes.count - 1
    }

    private mutating func add(_ fire: Fire, missed: Int64, lane index: Int) {
        var fire = fire
        let timer = lanes[index].timer
        // Late is what can be seen: a real clock is never on time to the nanosecond.
        let allowed = (timer?.tolerance ?? 0) + length / 10_000
        if fire.look == .onTime, fire.t - fire.due > allowed { fire.look = .late }
        lanes[index].fires.append(fire)
        if let work = timer?.busy, work > 0 {
            let span = Span(start: fire.t, end: fire.t + min(work, length - fire.t))
            lanes[index].busy.append(span)
            busy.append(span)
        }
        guard missed > 0, let step = timer?.interval, step > 0 else { return }
        // Those that passed while the fire waited follow its due point; the rest were lost before, to the timer's own
        // callback.
        let waited = min(missed, max(0, fire.t - fire.due) / step)
        lanes[index].addMissed(from: fire.due - (missed - waited) * step, count: missed - waited)
        lanes[index].addMissed(from: fire.due + step, count: waited)
    }

    /// Adds the points that passed after the last fire, of which no event tells: a timer that starves to the end.
    ///
    /// One that is moved is left out, for its grid does not follow from the scenario alone.
    private mutating func addStarved(_ index: Int, moved: Set<String>, end: Int64) {
        guard let timer = lanes[index].timer, !moved.contains(timer.name) else { return }
        let invalidated = lanes[index].marks.first { !$0.isDeinit }?.t
        let limit = min(end, invalidated.map { $0 - 1 } ?? end)
        let accounted = lanes[index].fires.filter { $0.look != .manual }.map(\.due) + lanes[index].missed.map(\.last)
        guard timer.interval > 0 || accounted.isEmpty else { return }
        let next = accounted.max().map { $0 + timer.interval } ?? timer.first
        guard next <= limit else { return }
        lanes[index].addMissed(from: next, count: timer.interval > 0 ? (limit - next) / timer.interval + 1 : 1)
    }

    /// Round times for an axis of that length: steps of 1, 2 or 5 and zeros.
    func ticks(atMost count: Int) -> [Int64] {
        var decade: Int64 = 1
        while true {
            for step in [decade, 2 * decade, 5 * decade] where length / step <= Int64(count) {
                return Array(stride(from: 0, through: length, by: Int(step)))
            }
            decade *= 10
        }
    }
}

extension Timeline.Lane {
    fileprivate mutating func addMissed(from first: Int64, count: Int64) {
        guard count > 0 else { return }
        missed.append(Timeline.Points(first: first, step: max(1, timer?.interval ?? 0), count: count))
    }
}
