internal import Synchronization

extension RunLoop {
    /// The greatest number of runs of one loop nested in another. A level takes up to 0.9 KB of the stack in a release
    /// build and 4.1 KB in a debug build, besides the callback's own use.
    static let deepestNesting = 500

    /// Runs the loop in `mode` until a limit, until it is stopped, or until nothing is left to wait for:
    /// `CFRunLoopRunInMode`, with its results.
    ///
    /// If nothing is scheduled in the mode, returns `finished` at once, whatever the limit.
    ///
    /// Can be called within any callback, in any mode, up to 500 runs deep; one more traps. An item that is due exactly
    /// at the limit still fires. If there are several reasons to end, the first of `handledSource`, `timedOut`,
    /// `starved`, `stopped` and `finished` is returned. On the loop's thread.
    ///
    /// - Parameters:
    ///   - mode: the mode; only items scheduled in it take part.
    ///   - limit: the date at which to return. If it is not later than now, the run makes exactly one pass, which does
    ///     not sleep.
    ///   - returnAfterSourceHandled: whether to return once a source has been handled. Timers and blocks are not
    ///     sources.
    @available(*, noasync, message: "a run loop blocks its thread; await withLoop, or run it on a LoopThread")
    @discardableResult
    public func run(
        in mode: Mode, until limit: Instant = .distantFuture, returnAfterSourceHandled: Bool = false
    ) -> RunResult {
        if let result = activate(mode, until: limit, returnsAfterSource: returnAfterSourceHandled) { return result }
        if isTraced { tellOfEmptyRun(in: mode, until: limit) }
        return .finished
    }

    /// Runs the loop in `mode` until a source has been handled, or until the date.
    ///
    /// Timers may fire any number of times meanwhile without ending the run. On the loop's thread.
    ///
    /// - Returns: `false` if the mode was empty and nothing was run, if on virtual time nothing can happen any more, or
    ///   if the loop's ``LoopThread`` is to end; otherwise `true`.
    @available(*, noasync, message: "a run loop blocks its thread; await withLoop, or run it on a LoopThread")
    @discardableResult
    public func run(mode: Mode, before limit: Instant) -> Bool {
        let result = activate(mode, until: limit, returnsAfterSource: true)
        return result != nil && result != .starved && !isEnding
    }

    /// Runs the loop in the default mode until nothing is left in it.
    ///
    /// A stop does not end this method, which starts another run. To run a loop that can be stopped, use
    /// ``run(in:until:returnAfterSourceHandled:)``. On the loop's thread.
    @available(*, noasync, message: "a run loop blocks its thread; await withLoop, or run it on a LoopThread")
    public func run() {
        while run(mode: .default, before: .distantFuture) {}
    }

    /// Runs the loop in the default mode until the date, or until nothing is left in it. Makes at least one pass, and
    /// is not ended by a stop. On the loop's thread.
    @available(*, noasync, message: "a run loop blocks its thread; await withLoop, or run it on a LoopThread")
    public func run(until limit: Instant) {
        while run(mode: .default, before: limit) && limit > now {}
    }

    /// Runs the loop in the default mode for this long, as ``run(until:)`` does.
    @available(*, noasync, message: "a run loop blocks its thread; await withLoop, or run it on a LoopThread")
    public func run(for duration: Duration) {
        run(until: now + duration)
    }

    /// Makes exactly one pass in `mode` without sleeping, which serves everything that is due. On the loop's thread.
    ///
    /// - Returns: the reason why the run ended: `timedOut`, or `finished` if the mode is empty and no pass was made.
    @available(*, noasync, message: "a run loop blocks its thread; await withLoop, or run it on a LoopThread")
    @discardableResult
    public func poll(in mode: Mode = .default) -> RunResult {
        run(in: mode, until: .distantPast)
    }

    /// Makes one pass in `mode` without sleeping, and returns the date when the next is due: Foundation's
    /// `limitDate(forMode:)`. On the loop's thread.
    ///
    /// - Returns: `nil` if nothing is scheduled in the mode; otherwise the date of its first timer, or
    ///   ``Instant/distantFuture`` if it has only sources.
    @available(*, noasync, message: "a run loop blocks its thread; await withLoop, or run it on a LoopThread")
    public func limitDate(forMode mode: Mode) -> Instant? {
        activate(mode, until: .distantPast, returnsAfterSource: true)
        return isEmpty(mode) ? nil : timers.earliestDate(in: mode) ?? .distantFuture
    }

    /// Returns the first date in `mode`, which may have passed; `nil` if nothing in it has a date. On the loop's
    /// thread, O(number of items with a date in the mode).
    public func nextFireDate(forMode mode: Mode) -> Instant? {
        checkThread()
        return timers.earliestDate(in: mode)
    }

    /// Makes one pass for a host, even in an empty mode: the host may have woken up for something in another one.
    ///
    /// - Parameters:
    ///   - afterSleep: whether the host has slept in the mode, and the pass continues from there.
    ///   - isAnnounced: whether a sleep was announced to observers before, and whether one is now.
    /// - Returns: `timedOut` if the host is to continue.
    func runForHost(in mode: Mode, afterSleep: Bool, isAnnounced: inout Bool) -> RunResult {
        let stopsAfterOnePass = beginRun(in: mode, until: .distantPast, returnsAfterSource: false)
        callsBegin(in: mode)
        if !runs.innermost!.isStopped {
            if stopsAfterOnePass { runs.innermost!.isStopped = true }
            if isAnnounced && !afterSleep { notify(.afterWaiting, in: mode) }
            _ = afterSleep ? passAfterHostsSleep() : pass()
        }
        isAnnounced = untimed.observerCount > 0 && announceHostsSleep(in: mode)
        let result: RunResult =
            runs.innermost!.isStopped ? .stopped : isEmpty(mode) && !mailbox.hasMail ? .finished : .timedOut
        callsEnd(in: mode, result, forHost: true)
        endRun()
        return result
    }

    /// Calls the observers of the next pass, up to the sleep. They cannot tell that the host sleeps in the loop's
    /// place.
    @inline(never)
    private func announceHostsSleep(in mode: Mode) -> Bool {
        guard !runs.innermost!.isStopped, !mailbox.hasMail, dateOfWork(in: mode) > recentTime() else { return false }
        notify(.beforeTimers, in: mode)
        notify(.beforeSources, in: mode)
        notify(.beforeWaiting, in: mode)
        return true
    }

    /// Makes one run. Returns `nil` if there was nothing to run, so that no observer was called.
    // Inlined, because the processor does not predict returns after a system call: one more call on the way cost 8 ns
    // of a pass.
    @discardableResult
    @inline(__always)
    private func activate(_ mode: Mode, until limit: Instant, returnsAfterSource: Bool) -> RunResult? {
        let stopsAfterOnePass = beginRun(in: mode, until: limit, returnsAfterSource: returnsAfterSource)
        let result = isEmpty(mode) ? foundEmpty(mode) : makePasses(in: mode, atMostOne: stopsAfterOnePass)
        endRun()
        return result
    }

    /// - Returns: whether the run makes a single pass, to run blocks posted before an earlier stop.
    @inline(__always)
    private func beginRun(in mode: Mode, until limit: Instant, returnsAfterSource: Bool) -> Bool {
        checkThread()
        freshTime = nil
        if let run = runs.innermost { nest(run) }
        runs.lastNumber += 1
        runs.innermost = Activation(
            mode: mode, limit: limit, isPoll: hasCome(limit), returnsAfterSource: returnsAfterSource,
            number: runs.lastNumber)
        innermostRunChanged()
        collectMail()
        let stopsAfterOnePass = runs.innermost!.isStopped || runs.isStopPending || isEnding
        runs.innermost!.isStopped = false
        runs.isStopPending = false
        return stopsAfterOnePass
    }

    @inline(__always)
    private func endRun() {
        assert(runs.innermost != nil, "a run ends that has not begun")
        runs.innermost = runs.outer.isEmpty ? nil : runs.outer.removeLast()
        innermostRunChanged()
    }

    @inline(__always)
    private func makePasses(in mode: Mode, atMostOne: Bool) -> RunResult {
        callsBegin(in: mode)
        var result: RunResult? = runs.innermost!.isStopped ? .stopped : nil
        if atMostOne { runs.innermost!.isStopped = true }
        while result == nil { result = pass() }
        callsEnd(in: mode, result!, forHost: false)
        return result!
    }

    @inline(__always)
    private func callsBegin(in mode: Mode) {
        if isWatched([.calls, .trace]) { watchedRunBegins(in: mode) }
        notify(.entry, in: mode)
    }

    @inline(__always)
    private func callsEnd(in mode: Mode, _ result: RunResult, forHost: Bool) {
        notify(.exit, in: mode)
        if isWatched([.calls, .trace, .uses]) { watchedRunEnds(in: mode, result, forHost: forHost) }
    }

    @inline(never)
    private func nest(_ run: Activation) {
        require(
            runs.outer.count < Self.deepestNesting,
            "\(Self.deepestNesting) runs of a loop are nested in another, each in a callback of the one before; "
                + "let a callback return before it is called again, or end its run")
        assert(run.number > runs.outer.last?.number ?? 0, "a run is nested in a later one")
        runs.outer.append(run)
    }

    /// Ends a run in an empty mode, without calling any observer.
    @inline(never)
    private func foundEmpty(_ mode: Mode) -> RunResult? {
        if isTraced && runs.outer.isEmpty { tellOfModesNeverRun(after: mode) }
        lookForUnservedMainActor()
        return nil
    }

    @inline(__always)
    private func innermostRunChanged() {
        mailbox.activation.store(runs.innermost?.number ?? 0, ordering: .releasing)
        timers.notesJoins = runs.innermost != nil
    }

    /// Returns whether a limit is not later than now. The clock is not read if that makes no difference.
    func hasCome(_ limit: Instant) -> Bool {
        limit == .distantPast || (limit != .distantFuture && limit <= now)
    }

    /// Returns whether no timer, source or block is in `mode`, so that a run would end at once. On the loop's thread.
    @inline(__always)
    func isEmpty(_ mode: Mode) -> Bool {
        if modeTable.isKeptAlive(mode) { return false }
        return !timers.hasMembers(in: mode) && (blocks.isEmpty || !hasBlocks(for: mode))
    }

    /// Indicates whether requests of other threads wait to be taken.
    @inline(__always)
    @_spi(Ports) public var hasMail: Bool { mailbox.hasMail }

    @inline(__always)
    func collectMail() {
        if hasMail { openMail() }
    }

    /// Takes the mail that has come. If `isClosing`, later mail is refused.
    func openMail(closing isClosing: Bool = false) {
        mailbox.collect(into: &mail, closing: isClosing)
        blocks.append(contentsOf: &mail.blocks)
        while let job = mail.jobs.popFirst() { job.executor.take(job.job, by: job.way, in: self) }
        assert(mail.blocks.isEmpty && mail.jobs.isEmpty, "mail was left in the buffer for it")
        guard !mail.requests.isEmpty else { return }
        var requests: [Mail<RunLoop>.Request] = []
        swap(&requests, &mail.requests)
        for request in requests {
            switch request {
            case .urgent(let block): block(self)
            case .stop(let number): runs.stop(number)
            case .wakeUp: runs.isWakeUpPending = true
            }
        }
        freshTime = nil
        requests.removeAll(keepingCapacity: requests.count < 1024)
        if mail.requests.isEmpty { swap(&requests, &mail.requests) }
    }
}
