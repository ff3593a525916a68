// How those who watch a loop learn of what it does. A loop that nobody watches asks one flag.

extension RunLoop {
    /// Calls a handler, and notes that for those who watch the loop.
    @inline(__always)
    func dispatch<Result>(_ callee: @autoclosure () -> Callee, _ call: () -> Result) -> Result {
        defer { freshTime = nil }
        guard isWatched else { return call() }
        let watched = watchedCallBegins(callee())
        defer { watchedCallEnds(watched) }
        return call()
    }

    /// Those who have noted the begin of a call, and are to note its end.
    private typealias Watched = (record: DispatchRecord?, flight: FlightLog?)

    @inline(never)
    private func watchedCallBegins(_ callee: Callee) -> Watched {
        schedule?.callBegins(callee.kind, named: callee.name, at: callee.origin)
        guard let mode = innermostRun?.mode else { return (nil, nil) }
        flight?.callBegins(
            callee, in: mode, passTime: timeOfPass,
            latenesses: (statistics.lateness.count, statistics.lateness.sum))
        record?.begin(callee, mode, at: now)
        return (record, flight)
    }

    @inline(never)
    private func watchedCallEnds(_ watched: Watched) {
        if watched.record != nil || watched.flight != nil {
            let now = now
            watched.record?.end(at: now)
            watched.flight?.callEnds(at: now)
        }
        schedule?.callEnded()
    }

    @inline(never)
    func watchedRunBegins(in mode: Mode) {
        guard record != nil || flight != nil else { return }
        let now = now
        record?.beginRun(at: now)
        flight?.runBegins(in: mode, at: now)
    }

    @inline(never)
    func watchedRunEnds(in mode: Mode) {
        guard record != nil || flight != nil else { return }
        let now = now
        record?.end(at: now)
        flight?.runEnds(in: mode, at: now)
    }

    @inline(never)
    func watchedSleepBegins(until date: Instant) {
        if flight != nil { FlightProbes.sleepBegins(until: date) }
    }

    @inline(never)
    func watchedWakeUp(in mode: Mode, at now: Instant) {
        flight?.wokeUp(in: mode, at: now, by: reasonToWake(in: mode, at: now))
    }

    /// Of several reasons at a time, the mail of another thread comes first, then descriptors.
    private func reasonToWake(in mode: Mode, at now: Instant) -> FlightLog.ReasonToWake {
        if let thread = mailbox.takeAwakener() { return .mail(thread) }
        if let token = ready.first {
            guard let source = descriptors[token] else { return .other }
            return source.with { .source(Callee($0.kind, $0.name, $0.origin)) }
        }
        let limit = innermostRun?.limit ?? .distantFuture
        return limit <= now || timers.nextDeadline(in: mode).map { $0 <= now } == true ? .date : .other
    }

    // MARK: Effects

    /// A handler that is under way has caused a call: it has armed a timer, or woken a task.
    @inline(never)
    func watchedCause(of callee: Callee) {
        flight?.causes(callee)
    }

    /// A block that is about to be posted, for a recorder: its call then names its cause.
    @inline(never)
    func watchedPost(_ body: @escaping (RunLoop) -> Void, _ origin: Origin) -> (RunLoop) -> Void {
        guard let flight else { return body }
        let number = FlightLog.numberOfPost()
        flight.causes(Callee(.block, nil, origin, number: number))
        return { loop in
            loop.flight?.callHas(number: number, from: nil)
            body(loop)
        }
    }

    // MARK: Bytes

    /// Whether a recorder writes down what it does.
    package var isRecorded: Bool { flight != nil }

    /// Tells the recorder of bytes that a connection has moved.
    package func recordBytes(_ count: Int, isInput: Bool, of source: Source, _ descriptor: Int32) {
        flight?.moved(
            count, isInput ? .received : .sent, by: descriptor, Callee(source.kind, source.name, source.origin))
    }
}

extension RunLoop.Remote {
    /// The same for a block that is posted to a loop with a recorder, perhaps from another thread.
    @inline(never)
    func recordedPost(
        _ body: @escaping @Sendable (RunLoop) -> Void, _ origin: RunLoop.Origin
    ) -> @Sendable (RunLoop) -> Void {
        let number = FlightLog.numberOfPost()
        RunLoop.installedReference?.with { $0.flight?.causes(Callee(.block, nil, origin, number: number)) }
        let thread = isCurrent ? nil : ThreadName.current
        return { loop in
            loop.flight?.callHas(number: number, from: thread)
            body(loop)
        }
    }
}
