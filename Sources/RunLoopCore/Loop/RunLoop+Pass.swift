// The heart of the loop: one pass, step by step. The steps have the numbers of the page *How a pass runs*.

extension RunLoop {
    /// Makes one pass of the innermost run.
    ///
    /// - Returns: the reason why the run is to end now, or `nil` if another pass is to follow.
    func pass() -> RunResult? { pass(afterHostsSleep: false) }

    /// Continues a pass at step 4 after a host slept for this loop.
    @inline(never)
    func passAfterHostsSleep() -> RunResult? {
        if isWatched(.sleeps) { watching.isAsleep = true }
        return pass(afterHostsSleep: true)
    }

    // Inlined, so that a pass of the loop's own has no trace of a host's.
    @inline(__always)
    private func pass(afterHostsSleep: Bool) -> RunResult? {
        let run = runs.innermost!
        let mode = run.mode
        assert(mail.isEmpty, "mail was collected that has not been opened")
        runs.isWakeUpPending = false
        statistics.passes += 1
        var (didWork, handledSource) = (false, false)

        if !afterHostsSleep {
            // 1. Call observers.
            notify(.beforeTimers, in: mode)
            notify(.beforeSources, in: mode)

            // 2. Run blocks that were posted before this point, here or from other threads.
            collectMail()
            didWork = !blocks.isEmpty && performBlocks(in: mode)

            // 3. Serve signalled custom sources, and run blocks once more if there were any.
            handledSource = !signals.isEmpty && serveSignalled(in: mode, onlyFirst: run.returnsAfterSource)
            if handledSource { didWork = performBlocks(in: mode) || didWork }
        }

        // 4. Choose the date to sleep until: none if there is something to do, or nothing left to wait for.
        var wakeTime = run.isPoll || handledSource ? nil : self.wakeTime(in: mode, until: run.limit)
        let announcesSleep = wakeTime != nil
        if announcesSleep, !afterHostsSleep, notify(.beforeWaiting, in: mode) {
            wakeTime = self.wakeTime(in: mode, until: run.limit)
        }

        // 5. Wait: the one line that touches the world.
        var outcome = WaitOutcome.woke
        var sleeps = false
        if ready.isEmpty {
            if !parked.isEmpty { unpark(for: mode) }
            sleeps = wakeTime != nil && mailbox.fallAsleep()
            if sleeps && isWatched(.sleeps) { watchedSleepBegins(in: mode, until: wakeTime!) }
            outcome = driver.wait(until: sleeps ? wakeTime! : .distantPast, into: ready)
            if sleeps { mailbox.wakeUp() }
        }
        assert(outcome == .woke || ready.isEmpty, "a wait found descriptors, and yet nothing can happen")
        let slept = sleeps || afterHostsSleep
        if announcesSleep || afterHostsSleep { notify(.afterWaiting, in: mode) }

        // 6. Collect mail that came meanwhile, and read the clock, once. An item that is armed or joins the mode from
        //    here on waits for another pass.
        collectMail()
        let now = driver.now
        (freshTime, passTime) = (now, now)
        if slept && isWatched(.sleeps) { watchedWakeUp(in: mode, at: now) }
        let mark = timers.beginPass(isOutermost: runs.outer.isEmpty)

        // 7. Fire timers due at that reading, straight from the queue: a nested run may have fired some in between.
        var fired = 0
        while let lane = timers.dueLane(in: mode, at: now) {
            guard let due = timers.popDue(from: lane, in: mode, at: now, before: mark) else { continue }
            assert(due.item.earliest <= now, "an item fires before its date")
            statistics.lateness.record(nanoseconds: recentTime().nanoseconds &- due.deadline.nanoseconds)
            if fire(due.item) { fired += 1 }
        }
        timers.restore()
        statistics.count(fires: fired, slept: slept)

        // 8. Serve descriptors that were found ready, and run blocks once more.
        if !ready.isEmpty && serveReady(in: mode) { handledSource = true }
        if !blocks.isEmpty && performBlocks(in: mode) { didWork = true }
        didWork = didWork || handledSource || fired > 0

        assert(runs.innermost?.number == run.number, "the pass is of another run than the innermost one")
        // 9. Leave? In CFRunLoop's order.
        if handledSource && run.returnsAfterSource { return .handledSource }
        if run.isPoll || hasReached(run.limit, passTime: now, didWork: didWork) { return .timedOut }
        if outcome == .starved && !didWork { return .starved }
        if runs.innermost!.isStopped { return .stopped }
        return isEmpty(mode) && !mailbox.hasMail ? .finished : nil
    }

    @inline(__always)
    private func fire(_ item: TimerReference<TimedItem>) -> Bool {
        guard let call = item.call else { return item.node.object.deadlineCame(in: self) }
        make(call)
        return true
    }

    /// Returns the date until which to sleep; `nil` if there is something to do at once, or nothing to wait for.
    private func wakeTime(in mode: Mode, until limit: Instant) -> Instant? {
        guard !runs.innermost!.isStopped, !runs.isWakeUpPending, ready.isEmpty, !mailbox.hasMail else { return nil }
        guard blocks.isEmpty || !hasBlocks(for: mode) else { return nil }
        let deadline = timers.nextDeadline(in: mode)
        guard deadline != nil || !isEmpty(mode) else { return nil }
        let wakeTime = min(deadline ?? .distantFuture, limit)
        return wakeTime == .distantFuture || wakeTime > recentTime() ? wakeTime : nil
    }

    /// Returns whether the clock is past the limit, or a pass at exactly that time found nothing to do: an item that is
    /// due at the limit still fires, even if a callback ends at the limit.
    private func hasReached(_ limit: Instant, passTime: Instant, didWork: Bool) -> Bool {
        guard limit != .distantFuture else { return false }
        return recentTime() > limit || (passTime >= limit && !didWork)
    }
}
