internal import Synchronization

extension RunLoop {
    /// Why a run ended; the first four with CFRunLoop's numbers.
    public enum RunResult: Int32, Sendable, Hashable {
        /// The mode was empty, or has become so: nothing is left to wait for.
        case finished = 1
        /// Somebody asked for it.
        case stopped = 2
        /// The limit has been reached.
        case timedOut = 3
        /// A source was handled, and the run was to return then.
        case handledSource = 4
        /// On virtual time only: there is something left to wait for, but nothing can ever happen any more.
        case starved = 5
    }

    /// Runs the loop in `mode` until a limit, until it is stopped, or until nothing is left to wait for: the level of
    /// `CFRunLoopRunInMode`, with its results (R27–R36).
    ///
    /// May be called from within any callback, in any mode, to any depth (R89). What is due exactly at the limit still
    /// fires (R35). If several reasons to end meet, the order is `handledSource`, `timedOut`, `stopped`, `finished`
    /// (R33).
    ///
    /// - Parameters:
    ///   - mode: the mode; only what is scheduled in it takes part.
    ///   - limit: when to return; a limit that is not later than now makes exactly one pass that does not sleep.
    ///   - returnAfterSourceHandled: whether to return once a source has been handled; timers and blocks are not
    ///     sources (R32).
    @available(*, noasync, message: "a run loop blocks its thread; run it on a LoopThread")
    @discardableResult
    public func run(
        in mode: Mode, until limit: Instant = .distantFuture, returnAfterSourceHandled: Bool = false
    ) -> RunResult {
        activate(mode, until: limit, returnsAfterSource: returnAfterSourceHandled) ?? .finished
    }

    /// Runs the loop in `mode` until a source has been handled, or until the date.
    ///
    /// Timers may fire any number of times meanwhile; they do not end the run (R42).
    ///
    /// - Returns: `false` if the mode was empty and nothing was run (R41), if on virtual time nothing can ever happen
    ///   any more, or if the loop's ``LoopThread`` is to end; `true` otherwise, whatever ended the run.
    @available(*, noasync, message: "a run loop blocks its thread; run it on a LoopThread")
    @discardableResult
    public func run(mode: Mode, before limit: Instant) -> Bool {
        let result = activate(mode, until: limit, returnsAfterSource: true)
        return result != nil && result != .starved && !isEnding
    }

    /// Runs the loop in the default mode until nothing is left in it.
    ///
    /// A stop ends only the run inside of it, and it goes on (R46, R47). For a loop that is to be stopped use
    /// ``run(in:until:returnAfterSourceHandled:)``.
    @available(*, noasync, message: "a run loop blocks its thread; run it on a LoopThread")
    public func run() {
        while run(mode: .default, before: .distantFuture) {}
    }

    /// Runs the loop in the default mode until the date, or until nothing is left in it (R45). At least one pass is
    /// made. A stop does not end it (R46).
    @available(*, noasync, message: "a run loop blocks its thread; run it on a LoopThread")
    public func run(until limit: Instant) {
        while run(mode: .default, before: limit) && limit > now {}
    }

    /// Like ``run(mode:before:)``, without a result (R50).
    @available(*, noasync, message: "a run loop blocks its thread; run it on a LoopThread")
    public func acceptInput(forMode mode: Mode, before limit: Instant) {
        run(mode: mode, before: limit)
    }

    /// Makes one pass in `mode` without sleeping, and tells when the next is due (R49).
    ///
    /// - Returns: `nil` if nothing is scheduled in the mode; else the date of its earliest timer; else, with sources
    ///   only, ``Instant/distantFuture``.
    @available(*, noasync, message: "a run loop blocks its thread; run it on a LoopThread")
    public func limitDate(forMode mode: Mode) -> Instant? {
        activate(mode, until: .distantPast, returnsAfterSource: true)
        return isEmpty(mode) ? nil : timers.nextDeadline(in: mode) ?? .distantFuture
    }

    /// When the next timer in `mode` is to be served at the latest: its date, which may have passed, and its tolerance;
    /// `nil` without timers (R51). The cost is that of looking at one timer for each
    /// set of modes in use.
    public func nextFireDate(forMode mode: Mode) -> Instant? {
        checkThread()
        return timers.nextDeadline(in: mode)
    }

    /// Runs the loop in `mode` until there is nothing left to do up to `limit`, also when that is now: unlike a run
    /// whose limit has come it makes as many passes as that takes.
    @discardableResult
    package func settle(in mode: Mode, at limit: Instant) -> RunResult {
        activate(mode, until: limit, returnsAfterSource: false, isPoll: false) ?? .finished
    }

    /// Sleeps without running any mode, until `limit` or until another thread asks for something.
    package func doze(until limit: Instant) -> WaitOutcome {
        guard remote.mailbox.fallAsleep() else { return .woke }
        defer {
            remote.mailbox.wakeUp()
            // No mode runs that could serve what was found ready; unwatched, it cannot end the next sleep at once.
            parkReady()
        }
        return driver.wait(until: limit, into: ready)
    }

    /// One run. `nil` if there was nothing to run: then no observer was called (R27).
    // Inlined, because what returns after a system call is not predicted: a call more on the way was 8 ns of a pass.
    @discardableResult
    @inline(__always)
    private func activate(
        _ mode: Mode, until limit: Instant, returnsAfterSource: Bool, isPoll: Bool? = nil
    ) -> RunResult? {
        checkThread()
        freshTime = nil
        if let innermostRun { outerRuns.append(innermostRun) }
        lastActivationNumber += 1
        innermostRun = Activation(
            mode: mode, limit: limit, isPoll: isPoll ?? hasCome(limit), returnsAfterSource: returnsAfterSource,
            number: lastActivationNumber)
        innermostRunChanged()
        collectMail()
        // A stop that was asked for before the run began lets it make one pass, so that blocks posted before the stop
        // run.
        let stopsAfterOnePass = innermostRun!.isStopped || isStopPending || isEnding
        innermostRun!.isStopped = false
        isStopPending = false
        let result = isEmpty(mode) ? nil : makePasses(in: mode, atMostOne: stopsAfterOnePass)
        innermostRun = outerRuns.isEmpty ? nil : outerRuns.removeLast()
        innermostRunChanged()
        return result
    }

    @inline(__always)
    private func makePasses(in mode: Mode, atMostOne: Bool) -> RunResult {
        activity?.beginRun()
        if trace != nil { emit(.runBegan(mode)) }
        notify(.entry, in: mode)
        var result: RunResult? = innermostRun!.isStopped ? .stopped : nil
        if atMostOne { innermostRun!.isStopped = true }
        while result == nil { result = pass() }
        notify(.exit, in: mode)
        if trace != nil { emit(.runEnded(mode, result!)) }
        activity?.end(at: now)
        return result!
    }

    @inline(__always)
    private func innermostRunChanged() {
        remote.mailbox.activation.store(innermostRun?.number ?? 0, ordering: .releasing)
        timers.notesJoins = innermostRun != nil
    }

    /// Whether a limit is not later than now; the clock is not asked where it has nothing to say.
    private func hasCome(_ limit: Instant) -> Bool {
        limit == .distantPast || (limit != .distantFuture && limit <= now)
    }

    /// Whether nothing in `mode` can make a run worth while: no timer, no source, no block; observers do not count (R9,
    /// R10).
    @inline(__always)
    package func isEmpty(_ mode: Mode) -> Bool {
        if mode.id < modeStates.count && modeStates[mode.id].sourceCount > 0 { return false }
        return !timers.hasMembers(in: mode) && (blocks.isEmpty || !hasBlocks(for: mode))
    }

    /// Takes what other threads have asked for.
    @inline(__always)
    func collectMail() {
        if remote.mailbox.hasMail { openMail() }
    }

    private func openMail() {
        remote.mailbox.collect(into: &mail)
        if blocks.isEmpty {
            swap(&blocks, &mail.blocks)
        } else {
            while let block = mail.blocks.popFirst() { blocks.append(block) }
        }
        guard !mail.requests.isEmpty else { return }
        var requests: [Mailbox.Request] = []
        swap(&requests, &mail.requests)
        for request in requests {
            switch request {
            case .urgent(let block): block(self)
            case .stop(let number): stop(activation: number)
            case .wakeUp: isWakeUpPending = true
            }
        }
        freshTime = nil
        requests.removeAll(keepingCapacity: true)
        if mail.requests.isEmpty { swap(&requests, &mail.requests) }
    }

    /// Ends the run that was the innermost one when another thread asked; if that has ended by itself, the innermost
    /// one now, or else the next.
    private func stop(activation number: UInt64) {
        if let index = outerRuns.lastIndex(where: { $0.number == number }) {
            outerRuns[index].isStopped = true
        } else if innermostRun != nil {
            innermostRun!.isStopped = true
        } else {
            isStopPending = true
        }
    }
}
