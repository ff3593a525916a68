internal import CShims
internal import RunLoopKit

/// A loop that a console shows. It belongs to the console's thread.
final class WatchedLoop {
    let name: String
    private let remote: RunLoop.Remote
    private let service: RunLoop
    private let recordsAlways: Bool
    private let interval: Duration

    private var sampler: LoopSampler?
    private var report: LoopReport?
    private var connections: [Console.Connection] = []
    /// When a question was sent that has no answer yet.
    private var askedAt: RunLoop.Instant?
    /// A loop is not asked before, so that answers take at most a twentieth of its time.
    private var nextQuestion = RunLoop.Instant.distantPast
    /// The number of the next event to read.
    private var nextEvent = 0
    private(set) var hasEnded = false

    init(_ remote: RunLoop.Remote, named name: String, recordsAlways: Bool, interval: Duration, on service: RunLoop) {
        (self.remote, self.name, self.recordsAlways, self.interval) = (remote, name, recordsAlways, interval)
        self.service = service
        if recordsAlways { ask() }
    }

    deinit { endRecording() }

    /// The tasks of the newest report.
    var tasks: [RunLoop.Dump.Item] { report?.dump.items.filter { $0.task != nil } ?? [] }

    /// Asks the loop for a report, unless it has not answered yet.
    func ask() {
        let now = service.now
        guard askedAt == nil, now >= nextQuestion, !hasEnded else { return }
        askedAt = now
        let answer = Answer(LoopBound(self, loop: service))
        hasEnded = !remote.perform(inModes: .every) { loop in answer.give(LoopReport(loop)) }
    }

    /// Carries a report to the console's thread; or the news that there is none, because the loop has ended.
    private final class Answer: Sendable {
        private let watched: LoopBound<WatchedLoop>
        private let report = Locked<LoopReport?>(nil)

        init(_ watched: LoopBound<WatchedLoop>) {
            self.watched = watched
        }

        func give(_ report: LoopReport) { self.report.withLock { $0 = report } }

        deinit {
            let report = report.withLock(\.self)
            watched.remote.perform(inModes: .every) { [watched] _ in watched.value.take(report) }
        }
    }

    private func take(_ report: LoopReport?) {
        guard let report else {
            hasEnded = true
            return
        }
        askedAt = nil
        nextQuestion = service.now + report.cost * 20
        if let new = report.memory, self.report?.memory.map({ $0.isSame(as: new) }) != true {
            // Its first events may be old.
            nextEvent = (try? new.flight(from: 0))?.end ?? 0
            sampler?.forgetCalls(at: service.now)
        }
        self.report = report
        connections = report.dump.isVirtual ? [] : report.dump.items.compactMap { Console.Connection($0) }
    }

    func sample() -> Console.Loop {
        let now = remote.now
        if sampler == nil { sampler = LoopSampler(name: name, interval: interval, at: now) }
        if let flight = try? report?.memory?.flight(from: nextEvent) {
            nextEvent = flight.end
            sampler!.read(flight.entries)
        }
        var sight = LoopSampler.Sight(now: now, report: report)
        sight.isLate = askedAt.map { service.now - $0 >= interval } ?? false
        sight.isAsleep = remote.isWaiting
        sight.connections = connections
        if let thread = report?.thread {
            let time = rlk_thread_time(thread)
            if time >= 0 { sight.processorTime = .nanoseconds(time) }
            sight.isThreadWaiting = rlk_thread_sleeps(thread) != 0
        }
        return sampler!.sample(sight)
    }

    /// Nobody looks any more.
    func rest() {
        (sampler, report, connections) = (nil, nil, [])
        if !recordsAlways { endRecording() }
    }

    private func endRecording() {
        remote.perform(inModes: .every) { LoopReport.endRecording(of: $0) }
    }
}
