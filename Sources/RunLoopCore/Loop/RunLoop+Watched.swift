// Reports calls, runs and sleeps to monitors, recorders and schedules. A loop that is not watched checks one flag.

extension RunLoop {
    /// Calls a handler, and reports the call if the loop is watched.
    @inline(__always)
    func dispatch<Result>(_ callee: @autoclosure () -> Callee, _ call: () -> Result) -> Result {
        guard isWatched else {
            defer { freshTime = nil }
            return call()
        }
        watchedCallBegins(callee())
        defer { watchedCallEnds() }
        return call()
    }

    // A watcher that begins during a call ignores its end, because it knows of no call under way.

    @inline(never)
    private func watchedCallBegins(_ callee: Callee) {
        schedule?.callBegins(callee.kind, named: callee.name, at: callee.origin)
        guard let mode = innermostRun?.mode else { return }
        flight?.with {
            $0.callBegins(
                callee, in: mode, passTime: passTime,
                latenesses: (statistics.lateness.count, statistics.lateness.sum))
        }
        record?.begin(callee, mode, at: now)
    }

    @inline(never)
    fileprivate func watchedCallBegins(of source: Source) {
        guard schedule == nil, record == nil else { return watchedCallBegins(source.callee) }
        guard let mode = innermostRun?.mode else { return }
        flight?.with {
            $0.callBegins(source.callee, name: source.flightName(in: $0), in: mode, passTime: passTime)
        }
    }

    @inline(never)
    fileprivate func watchedCallEnds() {
        freshTime = nil
        if record != nil || flight != nil {
            let now = now
            record?.end(at: now)
            flight?.with { $0.callEnds(at: now) }
            // Nothing has run since: the pass need not read the clock again.
            if schedule == nil { freshTime = now }
        }
        schedule?.callEnded()
    }

    /// Discards the lateness of a deadline that called no handler.
    @inline(never)
    func watchedDateWithoutCall() {
        flight?.with { $0.ignoreLateness(in: (statistics.lateness.count, statistics.lateness.sum)) }
    }

    @inline(never)
    func watchedRunBegins(in mode: Mode) {
        guard record != nil || flight != nil else { return }
        let now = now
        record?.beginRun(at: now)
        flight?.with { $0.noteRun(.runBegan, in: mode, at: now) }
    }

    @inline(never)
    func watchedRunEnds(in mode: Mode, forHost: Bool) {
        // The run may have taken events for which the host waits.
        if !forHost { useHandler?() }
        guard record != nil || flight != nil else { return }
        let now = now
        record?.end(at: now)
        flight?.with { $0.noteRun(.runEnded, in: mode, at: now) }
    }

    @inline(never)
    func watchedSleepBegins(until date: Instant) {
        guard let flight else { return }
        flight.with { $0.isAsleep = true }
        FlightProbes.sleepBegins(until: date)
    }

    /// Writes the end of a sleep before the observers hear of it, so that the sleep does not include their time.
    @inline(never)
    func watchedSleepEnds(in mode: Mode) {
        if flight?.with(\.isAsleep) == true { watchedWakeUp(in: mode, at: driver.now) }
    }

    /// Writes the reason of a wake-up. Of several, mail of another thread comes first, then descriptors.
    @inline(never)
    func watchedWakeUp(in mode: Mode, at now: Instant) {
        flight?.with { log in
            guard log.isAsleep else {
                // A thread that was about to give its name when observers were called is not the reason for another
                // sleep's end.
                _ = mailbox.takeAwakener()
                return
            }
            log.isAsleep = false
            if let thread = mailbox.takeAwakener() {
                log.wokeUp(in: mode, at: now, by: thread)
            } else if !ready.isEmpty {
                guard let source = descriptors[ready[0].token] else {
                    return log.wokeUp(in: mode, at: now, atDate: false)
                }
                source.with { source in
                    log.wokeUp(in: mode, at: now, by: source.callee, name: source.flightName(in: log))
                }
            } else {
                let date = timers.nextDeadline(in: mode) ?? .distantFuture
                log.wokeUp(in: mode, at: now, atDate: min(date, innermostRun?.limit ?? .distantFuture) <= now)
            }
        }
    }

    // MARK: Effects

    /// Notes that a handler under way has caused a call: it has armed a timer, or woken a task.
    @inline(never)
    func watchedCause(of callee: Callee) {
        flight?.with { $0.causes(callee) }
    }

    /// Returns the body of a block to be posted. With a recorder, its call names its cause.
    @inline(never)
    func watchedPost(_ body: @escaping (RunLoop) -> Void, _ origin: Origin) -> (RunLoop) -> Void {
        guard let flight else { return body }
        let number = FlightLog.numberOfPost()
        flight.with { $0.causes(Callee(.block, nil, origin, number: number)) }
        return { loop in
            loop.flight?.with { $0.callHas(number: number, from: nil) }
            body(loop)
        }
    }
}

extension RunLoop.Source {
    /// Calls the handler as ``RunLoop/Item/dispatch(in:_:)`` does. With a recorder it does not make a callee for each
    /// call, which took 150 of the 2,200 instructions of an echo.
    @inline(__always)
    final func serve(in loop: RunLoop, _ handler: () -> Void) -> Bool {
        guard loop.isWatched else {
            defer { loop.freshTime = nil }
            return call(in: loop, handler)
        }
        loop.watchedCallBegins(of: self)
        defer { loop.watchedCallEnds() }
        return call(in: loop, handler)
    }

    /// Returns a meter for the bytes of a connection that has this source; `nil` if its loop has no recorder.
    package final func makeMeter(_ descriptor: Int32) -> FlightMeter? {
        home.flatMap { $0.with(\.log) }.map { FlightMeter($0, descriptor, callee) }
    }
}

extension RunLoop.Remote {
    /// Posts a block to a loop with a recorder, perhaps from another thread.
    @inline(never)
    func recordedPost(
        _ modes: RunLoop.Modes, _ body: @escaping @Sendable (RunLoop) -> Void, _ origin: RunLoop.Origin
    ) -> Bool {
        let number = FlightLog.numberOfPost()
        RunLoop.installedReference?.with { $0.watchedCause(of: Callee(.block, nil, origin, number: number)) }
        let thread = isCurrent ? nil : ThreadName.current
        let recorded: @Sendable (RunLoop) -> Void = { loop in
            loop.flight?.with { $0.callHas(number: number, from: thread) }
            body(loop)
        }
        return mailbox.post(Block(modes: modes, body: recorded, origin: origin))
    }
}
