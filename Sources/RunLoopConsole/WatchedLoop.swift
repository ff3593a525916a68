internal import CShims
@_spi(Ports) internal import RunLoopKit
@_spi(Ports) internal import RunLoopUnix

/// A loop that a console shows. On the console's thread.
final class WatchedLoop {
    let name: String
    private let remote: RunLoop.Remote
    private let service: RunLoop
    private let recordsAlways: Bool
    private let interval: Duration

    private var access: LoopReport.Access?
    private var report: LoopReport?
    private var connections: [Console.Connection] = []
    private var sampler: LoopSampler?
    /// The time of the question that has no answer yet.
    private var askedAt: RunLoop.Instant?
    /// The earliest time of the next question, so that answers take at most a twentieth of the loop's time.
    private var nextQuestion = RunLoop.Instant.distantPast
    private var nextEvent = 0
    private var isWatched = false
    private(set) var hasEnded = false

    init(_ remote: RunLoop.Remote, named name: String, recordsAlways: Bool, interval: Duration, on service: RunLoop) {
        (self.remote, self.name, self.recordsAlways, self.interval) = (remote, name, recordsAlways, interval)
        self.service = service
        // Once, so that a loop with a recorder can be watched when it is blocked already.
        ask { .access(LoopReport.Access($0, records: recordsAlways)) }
    }

    deinit { endRecording() }

    /// The tasks of the newest report.
    var tasks: [RunLoop.Dump.Item] { report?.dump.items.filter { $0.task != nil } ?? [] }

    // MARK: Questions

    /// Asks the loop for a report, if it has answered the last question.
    func ask() {
        isWatched = true
        guard askedAt == nil, service.now >= nextQuestion, !hasEnded else { return }
        askedAt = service.now
        ask { .report(LoopReport($0)) }
    }

    private enum Answer: Sendable {
        case access(LoopReport.Access)
        case report(LoopReport)
    }

    private func ask(_ question: @escaping @Sendable (RunLoop) -> Answer) {
        let carrier = Carrier(LoopBound(self, loop: service))
        hasEnded = !remote.perform(inModes: .every) { loop in carrier.keep(question(loop)) }
    }

    /// Carries an answer to the console's thread, or the news that there will be none.
    private final class Carrier: Sendable {
        private let watched: LoopBound<WatchedLoop>
        private let answer = Locked<Answer?>(nil)

        init(_ watched: LoopBound<WatchedLoop>) {
            self.watched = watched
        }

        func keep(_ answer: Answer) { self.answer.withLock { $0 = answer } }

        deinit {
            let answer = answer.withLock(\.self)
            watched.remote.perform(inModes: .every) { [watched] _ in watched.value.take(answer) }
        }
    }

    private func take(_ answer: Answer?) {
        switch answer {
        case nil: hasEnded = true
        case .access(let access): take(access)
        case .report(let report):
            askedAt = nil
            nextQuestion = service.now + report.cost * 20
            guard isWatched else { return }
            take(report.access)
            self.report = report
            connections = report.dump.isVirtual ? [] : report.dump.items.compactMap { Console.Connection($0) }
        }
    }

    private func take(_ access: LoopReport.Access) {
        if let new = access.memory, self.access?.memory.map({ $0.isSame(as: new) }) != true {
            // The recorder's first events may be old.
            nextEvent = (try? new.flight(from: 0))?.end ?? 0
            sampler?.forgetCalls(at: remote.now)
        }
        self.access = access
    }

    // MARK: Snapshots

    func sample() -> Console.Loop {
        let now = remote.now
        // Before the events, so that all that led to the sleep are among them.
        let isAsleep = remote.isWaiting
        let flight = try? access?.memory?.flight(from: nextEvent)
        nextEvent = flight?.end ?? nextEvent
        if sampler == nil {
            sampler = LoopSampler(name: name, interval: interval, after: flight?.entries ?? [], at: now)
        } else {
            sampler!.read(flight?.entries ?? [])
        }
        var sight = LoopSampler.Sight(now: now, report: report)
        sight.isLate = askedAt.map { service.now - $0 >= interval } ?? false
        sight.isAsleep = isAsleep
        sight.connections = connections
        if let thread = access?.thread {
            let time = rlk_thread_time(thread)
            if time >= 0 { sight.processorTime = .nanoseconds(time) }
            sight.isThreadWaiting = rlk_thread_sleeps(thread) != 0
        }
        return sampler!.sample(sight)
    }

    /// Ends the watch when there is no client left.
    func rest() {
        isWatched = false
        (sampler, report, connections) = (nil, nil, [])
        guard !recordsAlways else { return }
        endRecording()
        ask { .access(LoopReport.Access($0, records: false)) }
    }

    private func endRecording() {
        remote.perform(inModes: .every) { LoopReport.endRecording(of: $0) }
    }
}

extension Console.Connection {
    /// Creates a connection from the kernel's knowledge of an item's descriptor; `nil` if that is no connected stream
    /// socket. The kernel counts in any case, so showing a connection costs nothing more.
    fileprivate init?(_ item: RunLoop.Dump.Item) {
        guard let descriptor = item.descriptor else { return nil }
        var facts = rlk_stream_facts()
        guard rlk_look_at_stream(descriptor, &facts) == 0 else { return nil }
        let peer = "\(WorldSystem.real.peerAddress(of: descriptor))"
        self.init(
            descriptor: descriptor, name: item.name, origin: "\(item.origin)", peer: peer.isEmpty ? nil : peer,
            received: facts.is_tcp == 0 ? nil : Int(facts.received), sent: facts.is_tcp == 0 ? nil : Int(facts.sent),
            unread: Int(facts.unread), unsent: Int(facts.unsent))
    }
}
