// Tells watchers, recorders and schedules of calls, runs and sleeps. What nobody follows costs one look at a word.

extension RunLoop {
    /// Adds a watcher, which is told what the loop does until it is removed. The loop keeps it. A watcher that is added
    /// again is asked anew for its ``LoopWatcher/events``. On the loop's thread.
    @_spi(Ports) public func addWatcher(_ watcher: any LoopWatcher) {
        checkThread()
        follow { $0.change(watcher, isRemoved: false) }
    }

    /// Removes a watcher. Harmless if it was not added. On the loop's thread.
    @_spi(Ports) public func removeWatcher(_ watcher: any LoopWatcher) {
        checkThread()
        follow { $0.change(watcher, isRemoved: true) }
    }

    /// Adds a watcher in place of the one for which `isFormer` returns `true`.
    func replaceWatcher(by watcher: (any LoopWatcher)?, where isFormer: (any LoopWatcher) -> Bool) {
        let former = watching.watchers?.first(where: isFormer)
        follow {
            if let former { $0.change(former, isRemoved: true) }
            if let watcher { $0.change(watcher, isRemoved: false) }
        }
    }

    /// Changes the followers of the loop.
    func follow(_ change: (inout Watching) -> Void) {
        change(&watching)
        mailbox.notesPosters = isWatched([.sleeps, .effects])
    }

    /// The schedule that chooses for the loop, in an explored simulation.
    @_spi(Ports) public var schedule: (any CallSchedule)? {
        get { watching.schedule }
        set { follow { $0.schedule = newValue } }
    }

    /// Indicates whether anyone follows one of the events.
    @inline(__always)
    func isWatched(_ events: WatchedEvent.Groups) -> Bool { !watching.events.isDisjoint(with: events) }

    /// Tells an event to the watchers that follow its group. It is made only if there is one.
    @inline(__always)
    private func tell(_ group: WatchedEvent.Groups, _ event: @autoclosure () -> WatchedEvent) {
        if watching.told.contains(group) { tellWatchers(group, event()) }
    }

    @inline(never)
    private func tellWatchers(_ group: WatchedEvent.Groups, _ event: WatchedEvent) {
        watching.watchers?.tell(group, event)
    }

    // MARK: Trace

    /// A closure to call with the loop's activity, for tracing and to find out why nothing happens. `nil`, the default,
    /// costs nothing. With `RUNLOOP_DEBUG=1` in the environment, new loops have a trace that writes each
    /// ``TraceEvent/ignored(_:)`` to standard error.
    public var trace: ((TraceEvent) -> Void)? {
        get { (watching.watchers?.first { $0 is TraceWatcher } as? TraceWatcher)?.body }
        set {
            checkThread()
            replaceWatcher(by: newValue.map { TraceWatcher($0) }) { $0 is TraceWatcher }
        }
    }

    /// Indicates whether anyone follows trace events.
    @inline(__always)
    var isTraced: Bool { isWatched(.trace) }

    /// Tells a trace event, which is made only if anyone follows it.
    @inline(__always)
    package func emit(_ event: @autoclosure () -> TraceEvent) {
        if isTraced { emitTraced(event()) }
    }

    @inline(never)
    private func emitTraced(_ event: TraceEvent) {
        tell(.trace, .traced(event))
    }

    // MARK: Calls

    /// Calls a handler, and tells of the call if calls are followed.
    @inline(__always)
    func dispatch<Result>(_ callee: @autoclosure () -> Callee, _ call: () -> Result) -> Result {
        guard isWatched([.calls, .choices]) else {
            defer { freshTime = nil }
            return call()
        }
        watchedCallBegins(callee())
        defer { watchedCallEnds() }
        return call()
    }

    // A follower that begins during a call ignores its end, because it knows of no call under way.

    @inline(never)
    private func watchedCallBegins(_ callee: Callee) {
        watching.schedule?.callBegins(callee.kind, named: callee.name, at: callee.origin)
        guard let mode = runs.innermost?.mode else { return }
        watching.flight?.with {
            $0.callBegins(
                callee, in: mode, passTime: passTime,
                latenesses: (statistics.lateness.count, statistics.lateness.sum))
        }
        if watching.told.contains(.calls) { watching.watchers?.callBegan(callee, in: mode, at: now) }
    }

    @inline(never)
    fileprivate func watchedCallBegins(of source: Source) {
        guard watching.schedule == nil, !watching.told.contains(.calls) else { return watchedCallBegins(source.callee) }
        guard let mode = runs.innermost?.mode else { return }
        watching.flight?.with {
            $0.callBegins(source.callee, name: source.flightName(in: $0), in: mode, passTime: passTime)
        }
    }

    @inline(never)
    fileprivate func watchedCallEnds() {
        freshTime = nil
        if isWatched(.calls) {
            let now = now
            if watching.told.contains(.calls) { watching.watchers?.callEnded(at: now) }
            watching.flight?.with { $0.callEnds(at: now) }
            // Nothing has run since: the pass need not read the clock again.
            if watching.schedule == nil { freshTime = now }
        }
        watching.schedule?.callEnded()
    }

    /// Discards the lateness of a deadline that called no handler.
    @inline(never)
    func watchedDateWithoutCall() {
        watching.flight?.with { $0.ignoreLateness(in: (statistics.lateness.count, statistics.lateness.sum)) }
    }

    /// Notes that the call that the loop is making is about to take virtual time: its thread works, or waits for
    /// another one.
    @_spi(Ports) public func callTakesTime() {
        tell(.calls, .callTakesTime)
    }

    // MARK: Runs

    @inline(never)
    func watchedRunBegins(in mode: Mode) {
        if isWatched(.calls) {
            let now = now
            tell(.calls, .runBegan(in: mode, at: now))
            watching.flight?.with { $0.noteRun(.runBegan, in: mode, at: now) }
        }
        guard isTraced else { return }
        noteTracedRun(in: mode)
        emit(.runBegan(mode))
    }

    @inline(never)
    func watchedRunEnds(in mode: Mode, _ result: RunResult, forHost: Bool) {
        if isTraced {
            emit(.runEnded(mode, result))
            if result == .finished && runs.outer.isEmpty { tellOfModesNeverRun(after: mode) }
        }
        // The run may have taken events for which the host waits.
        if !forHost { watching.useHandler?() }
        guard isWatched(.calls) else { return }
        let now = now
        tell(.calls, .runEnded(in: mode, at: now))
        watching.flight?.with { $0.noteRun(.runEnded, in: mode, at: now) }
    }

    // MARK: Sleeps

    @inline(never)
    func watchedSleepBegins(in mode: Mode, until date: Instant) {
        watching.isAsleep = true
        if watching.told.contains(.sleeps) { tellSleep(in: mode, until: date) }
        if watching.flight != nil { FlightProbes.sleepBegins(until: date) }
    }

    // Apart, so that a sleep that only a recorder follows needs no time.
    @inline(never)
    private func tellSleep(in mode: Mode, until date: Instant) {
        tell(.sleeps, .fellAsleep(in: mode, until: date, at: recentTime()))
    }

    /// Tells the end of a sleep before the observers hear of it, so that the sleep does not include their time.
    @inline(never)
    func watchedSleepEnds(in mode: Mode) {
        if watching.isAsleep { watchedWakeUp(in: mode, at: driver.now) }
    }

    /// Tells the reason of a wake-up. Of several, mail of another thread comes first, then descriptors.
    @inline(never)
    func watchedWakeUp(in mode: Mode, at now: Instant) {
        guard watching.isAsleep else {
            // A thread that was about to give its name when observers were called is not the reason for another
            // sleep's end.
            _ = mailbox.takeAwakener()
            return
        }
        watching.isAsleep = false
        let thread = mailbox.takeAwakener()
        tell(.sleeps, .wokeUp(in: mode, by: wakeUpReason(thread, in: mode, at: now), at: now))
        watching.flight?.with { log in
            if let thread {
                log.wokeUp(in: mode, at: now, by: thread)
            } else if !ready.isEmpty {
                guard let source = descriptors[ready[0].token] else {
                    return log.wokeUp(in: mode, at: now, atDate: false)
                }
                source.with { source in
                    log.wokeUp(in: mode, at: now, by: source.callee, name: source.flightName(in: log))
                }
            } else {
                log.wokeUp(in: mode, at: now, atDate: hasDate(in: mode, at: now))
            }
        }
    }

    private func wakeUpReason(
        _ thread: ThreadName?, in mode: Mode, at now: Instant
    ) -> WatchedEvent.WakeUpReason {
        if let thread { return .thread("\(thread)") }
        guard ready.isEmpty else { return descriptors[ready[0].token]?.with { .source($0.callee) } ?? .other }
        return hasDate(in: mode, at: now) ? .date : .other
    }

    /// Returns whether an item is due, or the run has reached its limit.
    private func hasDate(in mode: Mode, at now: Instant) -> Bool {
        min(timers.nextDeadline(in: mode) ?? .distantFuture, runs.innermost?.limit ?? .distantFuture) <= now
    }

    // MARK: Effects

    /// Tells that a handler under way has caused a call: it has armed an item, posted a block, or woken a task.
    @inline(never)
    func watchedCause(of callee: Callee) {
        watching.flight?.with { $0.causes(callee) }
        tell(.effects, callee.kind.hasDate ? .armed(callee) : .posted(callee))
    }

    /// Returns the body of a block to be posted, whose call names its cause.
    @inline(never)
    func watchedPost(_ body: @escaping (RunLoop) -> Void, _ origin: Origin) -> (RunLoop) -> Void {
        let number = FlightLog.numberOfPost()
        watchedCause(of: Callee(.block, nil, origin, number: number))
        return { loop in
            loop.watchedCallFollows(number, from: nil)
            body(loop)
        }
    }

    /// Tells that the call under way is the effect with that number.
    @inline(never)
    fileprivate func watchedCallFollows(_ number: UInt64, from thread: ThreadName?) {
        watching.flight?.with { $0.callHas(number: number, from: thread) }
        tell(.effects, .callFollows(number, postedBy: thread.map { "\($0)" }))
    }
}

extension RunLoop.Source {
    /// Calls the handler as ``RunLoop/Item/dispatch(in:_:)`` does. With a recorder it does not make a callee for each
    /// call, which took 150 of the 2,200 instructions of an echo.
    @inline(__always)
    final func serve(in loop: RunLoop, _ handler: () -> Void) -> Bool {
        guard loop.isWatched([.calls, .choices]) else {
            defer { loop.freshTime = nil }
            return call(in: loop, handler)
        }
        loop.watchedCallBegins(of: self)
        defer { loop.watchedCallEnds() }
        return call(in: loop, handler)
    }

    /// Returns a meter for the bytes of a connection that has this source; `nil` if nobody follows them.
    package final func makeMeter(_ descriptor: Int32) -> FlightMeter? {
        home?.with { loop in
            guard loop.isWatched(.bytes) else { return nil }
            guard loop.watching.told.contains(.bytes) else { return FlightMeter(loop.watching.log, descriptor, callee) }
            return FlightMeter(loop.watching.log, descriptor, callee) {
                [callee, weak watchers = loop.watching.watchers] received, sent in
                watchers?.tell(.bytes, .moved(received: received, sent: sent, by: descriptor, of: callee))
            }
        }
    }
}

extension RunLoop.Remote {
    /// Posts a block to a loop whose effects are followed, perhaps from another thread.
    @inline(never)
    func watchedPost(
        _ modes: RunLoop.Modes, _ body: @escaping @Sendable (RunLoop) -> Void, _ origin: RunLoop.Origin
    ) -> Bool {
        let number = FlightLog.numberOfPost()
        RunLoop.installedReference?.with { $0.watchedCause(of: RunLoop.Callee(.block, nil, origin, number: number)) }
        let thread = isCurrent ? nil : ThreadName.current
        let watched: @Sendable (RunLoop) -> Void = { loop in
            loop.watchedCallFollows(number, from: thread)
            body(loop)
        }
        return mailbox.post(Block(modes: modes, body: watched, origin: origin))
    }
}
