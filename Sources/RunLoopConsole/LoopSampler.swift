@_spi(Ports) internal import RunLoopKit

/// Creates the part of a snapshot for one loop, from its reports and from the events of its recorder.
struct LoopSampler {
    /// The knowledge of a loop at the time of a snapshot, besides the events.
    struct Sight {
        var now: RunLoop.Instant
        /// The newest report; `nil` if the loop never made one.
        var report: LoopReport?
        /// Set if the loop has left a question unanswered for an interval.
        var isLate = false
        var isAsleep = false
        /// The time that the loop's thread has computed; `nil` if that is unknown.
        var processorTime: Duration?
        /// Set if the loop's thread waits, and does not compute.
        var isThreadWaiting = false
        /// The connections of the newest report.
        var connections: [Console.Connection] = []
    }

    /// The greatest length of each list.
    static let most = 100

    private let name: String
    /// The duration beyond which a call blocks the loop.
    private let interval: Duration
    private var times: HandlerTimes
    private var growth = GrowthWatch()
    private var growing: [GrowthWatch.Line: (items: Int, time: Duration)] = [:]
    /// The times and statistics of the last two reports.
    private var reports: [(time: RunLoop.Instant, statistics: RunLoop.Statistics)] = []
    private var processorTime: (date: RunLoop.Instant, time: Duration)?

    /// - Parameter entries: earlier events, of which only the calls under way count.
    init(name: String, interval: Duration, after entries: [Flight.Entry] = [], at now: RunLoop.Instant) {
        (self.name, self.interval) = (name, interval)
        times = HandlerTimes(at: now)
        times.read(entries)
        _ = times.take(at: now, isAsleep: false)
    }

    /// Reads the events since the last snapshot.
    mutating func read(_ entries: some Sequence<Flight.Entry>) { times.read(entries) }

    /// Forgets calls under way, because another recorder writes from now on.
    mutating func forgetCalls(at now: RunLoop.Instant) { times = HandlerTimes(at: now) }

    mutating func sample(_ sight: Sight) -> Console.Loop {
        let window = times.take(at: sight.now, isAsleep: sight.isAsleep)
        var loop = Console.Loop(name: name, state: .busy)
        if let report = sight.report {
            if reports.last?.time != report.dump.now { take(report.dump) }
            loop.age = (sight.now - report.dump.now).seconds
            // The dates of a loop that answers are the answer's, because it has not missed any since.
            fill(&loop, from: report.dump, at: sight.isLate ? sight.now : report.dump.now)
            if report.access.memory != nil { loop.asleep = window.sleep.share(of: window.length) }
        }
        if !sight.isLate { fillRates(&loop) }
        loop.connections = Array(sight.connections.sorted { $0.bytes > $1.bytes }.prefix(Self.most))
        loop.counts.connections = sight.connections.count
        if let time = sight.processorTime {
            if let last = processorTime { loop.computing = (time - last.time).share(of: sight.now - last.date) }
            processorTime = (sight.now, time)
        }
        loop.handlers = handlers(of: window)
        if let call = window.call {
            loop.call = Console.Call(call.handler, for: sight.now - call.begin, isWaiting: sight.isThreadWaiting)
        }
        loop.state = state(sight, window)
        return loop
    }

    private func state(_ sight: Sight, _ window: HandlerTimes.Window) -> Console.LoopState {
        if let call = window.call, sight.now - call.begin > interval { return .blocked }
        if sight.isLate || sight.report == nil { return .silent }
        return sight.isAsleep ? .asleep : .busy
    }

    // MARK: From reports

    private mutating func take(_ dump: RunLoop.Dump) {
        reports = reports.suffix(1) + [(dump.now, dump.statistics)]
        growing = growth.look(counts(of: dump).mapValues(\.count), at: dump.now)
    }

    private func counts(of dump: RunLoop.Dump) -> [GrowthWatch.Line: (count: Int, name: String?)] {
        var counts: [GrowthWatch.Line: (count: Int, name: String?)] = [:]
        for item in dump.items where item.kind != .block && item.kind != .executor {
            let line = GrowthWatch.Line(kind: item.kind, origin: item.origin)
            let known = counts[line] ?? (count: 0, name: item.name)
            counts[line] = (known.count + 1, known.name == item.name ? item.name : nil)
        }
        return counts
    }

    private func fillRates(_ loop: inout Console.Loop) {
        guard reports.count == 2, let last = reports.last else { return }
        let (time, old) = (last.time - reports[0].time, reports[0].statistics)
        guard time > .zero else { return }
        func rate(_ counter: KeyPath<RunLoop.Statistics, Int>) -> Double {
            Double(last.statistics[keyPath: counter] - old[keyPath: counter]) / time.seconds
        }
        (loop.passes, loop.sleeps, loop.fires, loop.jobs) = (rate(\.passes), rate(\.waits), rate(\.fires), rate(\.jobs))
    }

    private func fill(_ loop: inout Console.Loop, from dump: RunLoop.Dump, at now: RunLoop.Instant) {
        loop.modes = dump.runs.map(\.name)
        if reports.count == 2 {
            let lateness = dump.statistics.lateness.since(reports[0].statistics.lateness)
            loop.lateness = Console.Lateness(
                count: lateness.count, half: lateness.quantile(0.5).seconds, most: lateness.quantile(0.99).seconds,
                all: lateness.quantile(1).seconds)
        }
        let all = counts(of: dump).map { line, value in
            Console.Line(
                kind: line.kind.rawValue, name: value.name, origin: "\(line.origin)", count: value.count,
                growth: growing[line].map { Console.Growth(items: $0.items, time: $0.time.seconds) })
        }
        loop.lines = Array(
            all.sorted { left, right in
                let (one, other) = (left.growth?.items ?? 0, right.growth?.items ?? 0)
                return (one, left.count, right.origin, right.kind) > (other, right.count, left.origin, left.kind)
            }.prefix(Self.most))
        loop.due = dump.items.lazy.filter { $0.deadline != nil }.prefix(Self.most).map { item in
            Console.Due(
                kind: item.kind.rawValue, name: item.name, origin: "\(item.origin)",
                time: (item.deadline! - now).seconds, detail: item.detail)
        }
        let tasks = dump.items.filter { $0.task != nil }
        loop.tasks = tasks.prefix(1000).map { item in
            Console.Task(
                number: item.task!.number, name: item.name, origin: "\(item.origin)", activity: item.task!.activity)
        }
        (loop.counts.items, loop.counts.tasks) = (dump.items.count, tasks.count)
    }

    // MARK: From events

    private func handlers(of window: HandlerTimes.Window) -> [Console.Handler] {
        let all = window.handlers.sorted { left, right in
            (left.value.time, "\(right.key as Flight.Handler?)") > (right.value.time, "\(left.key as Flight.Handler?)")
        }
        return all.prefix(Self.most).map { handler, sum in
            Console.Handler(
                kind: handler?.kind.rawValue ?? "unnamed", name: handler?.name, origin: handler?.origin ?? "",
                calls: sum.calls, share: sum.time.share(of: window.length) ?? 0, longest: sum.longest.seconds)
        }
    }
}

extension Console.Call {
    fileprivate init(_ handler: Flight.Handler?, for time: Duration, isWaiting: Bool) {
        self.init(
            kind: handler?.kind.rawValue ?? "unnamed", name: handler?.name, origin: handler?.origin ?? "",
            time: time.seconds, isWaiting: isWaiting)
    }
}

extension Console.Connection {
    fileprivate var bytes: Int { (received ?? 0) + (sent ?? 0) }
}

extension Duration {
    var seconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }

    /// Returns the share of this time in `whole`; `nil` if that is zero.
    func share(of whole: Duration) -> Double? {
        whole > .zero ? min(1, max(0, seconds / whole.seconds)) : nil
    }
}
