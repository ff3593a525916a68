/// The contents of both pictures, derived once from the scenario and its events.
struct Chart {
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

        /// Returns the points at least `distance` apart: a thousand circles in one place are one circle.
        func thinned(to distance: Int64) -> StrideThrough<Int64> {
            let every = max(1, distance / step) * step
            return stride(from: first, through: last, by: Int(every))
        }
    }

    /// An invalidation or a cancellation, or the end of a target.
    struct Mark {
        var t: Int64
        var isDeinit: Bool
    }

    /// An item that fires on one thread, with its fires.
    struct Lane {
        var name: String
        var plan: Plan?
        var fires: [Fire] = []
        var missed: [Points] = []
        var marks: [Mark] = []
        var busy: [Span] = []
    }

    /// The lanes of one thread, and its busy times.
    struct ThreadLanes {
        var name: String
        var lanes: [Lane] = []
        var busy: [Span] = []
    }

    private(set) var length: Int64
    private(set) var bands: [Band] = []
    /// The threads, the main one first.
    private(set) var threads: [ThreadLanes]

    var main: ThreadLanes { threads[0] }
    var others: ArraySlice<ThreadLanes> { threads.dropFirst() }

    private let plans: [Plan]

    init(scenario: Scenario, events: [ScenarioEvent]) {
        length = max(scenario.duration, events.map(\.t).max() ?? 0, 1)
        plans = scenario.plans
        threads = [ThreadLanes(name: "main")]
        threads[0].lanes = plans.filter { !$0.isInBackground }.map { Lane(name: $0.name, plan: $0) }
        // Begin and end are paired innermost first.
        var runs: [Int] = []
        var works: [Int] = []
        for event in events {
            switch event.kind {
            case .runBegin(let mode):
                bands.append(Band(mode: mode, depth: runs.count + 1, span: Span(start: event.t, end: length)))
                runs.append(bands.count - 1)
            case .runEnd: if let run = runs.popLast() { bands[run].span.end = event.t }
            case .busyBegin:
                threads[0].busy.append(Span(start: event.t, end: length))
                works.append(threads[0].busy.count - 1)
            case .busyEnd: if let work = works.popLast() { threads[0].busy[work].end = event.t }
            case .deinit(let name): mark(event, isDeinit: true) { $0.target == name }
            case .invalidated(let name), .cancelled(let name): mark(event, isDeinit: false) { $0.name == name }
            case .fire, .delivery, .frame, .action, .tick: add(event)
            case .reading, .end: break
            }
        }
        for index in threads[0].lanes.indices { addStarved(index, end: events.last?.t ?? -1) }
    }

    // MARK: Lanes

    /// Returns the lane of an item on a thread; adds one for a new thread or name.
    private mutating func lane(_ name: String, on thread: String?) -> (thread: Int, lane: Int) {
        let thread = thread ?? "main"
        if !threads.contains(where: { $0.name == thread }) { threads.append(ThreadLanes(name: thread)) }
        let place = threads.firstIndex { $0.name == thread }!
        if let lane = threads[place].lanes.firstIndex(where: { $0.name == name }) { return (place, lane) }
        threads[place].lanes.append(Lane(name: name, plan: plans.first { $0.name == name }))
        return (place, threads[place].lanes.count - 1)
    }

    /// Marks the first lane of an item that has ended, on any thread.
    private mutating func mark(_ event: ScenarioEvent, isDeinit: Bool, _ matches: (Plan) -> Bool) {
        let mark = Mark(t: event.t, isDeinit: isDeinit)
        for thread in threads.indices {
            for lane in threads[thread].lanes.indices {
                guard let plan = threads[thread].lanes[lane].plan, matches(plan) else { continue }
                return threads[thread].lanes[lane].marks.append(mark)
            }
        }
        guard let plan = plans.first(where: matches) else { return }
        let (thread, lane) = lane(plan.name, on: event.thread)
        threads[thread].lanes[lane].marks.append(mark)
    }

    private mutating func add(_ event: ScenarioEvent) {
        guard let shown = event.shown else { return }
        let (thread, index) = lane(shown.name, on: event.thread)
        let plan = threads[thread].lanes[index].plan
        var fire = Fire(t: event.t, due: shown.due, count: shown.count, look: shown.isManual ? .manual : .onTime)
        // Only visible lateness counts: a real clock is never on time to the nanosecond.
        let allowed = (plan?.tolerance ?? 0) + length / 10_000
        if fire.look == .onTime, fire.t - fire.due > allowed { fire.look = .late }
        let previous = threads[thread].lanes[index].fires.last?.due
        threads[thread].lanes[index].fires.append(fire)
        if let work = plan?.busy, work > 0 {
            let span = Span(start: fire.t, end: fire.t + min(work, length - fire.t))
            threads[thread].lanes[index].busy.append(span)
            threads[thread].busy.append(span)
        }
        guard shown.missed > 0, let step = plan?.interval, step > 0 else { return }
        // Points that passed while the fire waited follow its due point; earlier ones were lost during the timer's own
        // callback.
        let waited = min(shown.missed, max(0, fire.t - fire.due) / step)
        let lost = shown.missed - waited
        // A link that is called late begins anew there.
        let firstLost = shown.isFrame ? (previous ?? 0) + step : fire.due - lost * step
        threads[thread].lanes[index].addMissed(from: firstLost, count: lost)
        threads[thread].lanes[index].addMissed(from: fire.due + step, count: waited)
    }

    /// Adds the points that passed after the last fire, which no event reports: an item that starves to the end.
    private mutating func addStarved(_ index: Int, end: Int64) {
        let lane = threads[0].lanes[index]
        guard let plan = lane.plan, plan.hasFixedGrid else { return }
        let ended = lane.marks.first { !$0.isDeinit }?.t
        let limit = min(end, ended.map { $0 - 1 } ?? end)
        let accounted = lane.fires.filter { $0.look != .manual }.map(\.due) + lane.missed.map(\.last)
        guard plan.interval > 0 || accounted.isEmpty else { return }
        let next = accounted.max().map { $0 + plan.interval } ?? plan.first
        guard next <= limit else { return }
        let count = plan.interval > 0 ? (limit - next) / plan.interval + 1 : 1
        threads[0].lanes[index].addMissed(from: next, count: count)
    }

    /// Returns round times for an axis: steps of 1, 2 or 5 and zeros.
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

extension Chart.Lane {
    fileprivate mutating func addMissed(from first: Int64, count: Int64) {
        guard count > 0 else { return }
        missed.append(Chart.Points(first: first, step: max(1, plan?.interval ?? 0), count: count))
    }
}

extension ScenarioEvent {
    /// The parts of a fire of any kind that a picture shows.
    fileprivate var shown: (name: String, count: Int, due: Int64, missed: Int64, isManual: Bool, isFrame: Bool)? {
        switch kind {
        case .fire(let name, let count, _, let due, let missed, let manual): (name, count, due, missed, manual, false)
        case .delivery(let name, let count, _, let due, let data): (name, count, due, data - 1, false, false)
        case .frame(let name, let count, _, let timestamp, let dropped): (name, count, timestamp, dropped, false, true)
        case .action(let name, let count, _, _, _), .tick(let name, let count, _, _): (name, count, t, 0, false, false)
        case .invalidated, .deinit, .runBegin, .runEnd, .busyBegin, .busyEnd, .cancelled, .reading, .end: nil
        }
    }
}
