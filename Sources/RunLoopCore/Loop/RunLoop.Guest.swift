extension RunLoop {
    /// A run loop as the guest of another library's loop, its *host*, on the same thread.
    ///
    /// The host waits for both: it polls ``fileDescriptor`` for reading, beside its own, and calls ``run(in:)`` when it is
    /// readable.
    ///
    /// ```swift
    /// let guest = loop.makeGuest()
    /// var ready = pollfd(fd: try guest.fileDescriptor, events: Int16(POLLIN), revents: 0)
    /// repeat { poll(&ready, 1, -1) } while guest.run() == .timedOut
    /// ```
    ///
    /// The descriptor is readable when there is something to do in the *mode of the wait*, which is the argument of the
    /// last call of ``run(in:)`` or ``prepare(in:)``. That includes deadlines, to the nanosecond and never early, and
    /// requests of other threads. Descriptors that are ready in another mode are found once and parked.
    ///
    /// Between these calls the loop may be used as always, on its thread. The first use makes the descriptor readable,
    /// because there may be something else to wait for. A host that can call ``prepare(in:)`` before it waits is spared
    /// that wake-up.
    ///
    /// A guest never sleeps. A handler that runs the loop itself, with `run(in:until:returnAfterSourceHandled:)`,
    /// sleeps there and holds up the host. To have both continue, it calls ``prepare(in:)`` and runs the host, which
    /// calls ``run(in:)`` in turn, up to 500 deep.
    ///
    /// A loop has one guest at a time, and runs on its own again once the guest has been released. A guest belongs to
    /// its loop's thread, and is not `Sendable`. <doc:BesideAnotherLoop> has the rules, hosts and costs.
    public final class Guest {
        private let loop: RunLoop
        /// The date of the last preparation.
        private var date = Instant.distantPast
        /// Set if a sleep of the loop was announced to observers.
        private var isSleepAnnounced = false

        fileprivate init(_ loop: RunLoop, _ mode: Mode) {
            self.loop = loop
            require(
                loop.watching.useHandler == nil,
                "a run loop has one host at a time; release the guest of the other one first")
            // The loop is about to change: the host is to look.
            let handler = { [unowned self] in
                awake()
                if !self.loop.hasEnded { self.loop.driver.setAlarm(to: .distantPast) }
            }
            loop.follow { $0.useHandler = handler }
            prepareWait(in: mode)
        }

        deinit {
            awake()
            loop.follow { $0.useHandler = nil }
            loop.runs.hostWait = nil
        }

        /// The descriptor that a host polls for reading, by level; readable when ``run(in:)`` has something to do.
        ///
        /// The loop itself waits on this descriptor. It stays the same, and open as long as the guest and the loop
        /// exist; do not close it, and do not add anything to it. The first call looks for it in `/proc/self/fdinfo`.
        ///
        /// - Throws: ``RunLoop/GuestError``, in a simulation, in a recording, or without `/proc`. There, a host uses
        ///   the dates that ``prepare(in:)`` returns.
        public var fileDescriptor: Int32 {
            get throws(GuestError) { try loop.driver.findDescriptor() }
        }

        /// Makes one pass in `mode`, which serves everything that is due and never sleeps. The descriptor is then
        /// readable when there is more to do in the mode.
        ///
        /// The pass begins where the loop alone would wake up. Observers of `entry` and `exit` are called each time,
        /// and observers of `beforeWaiting` and `afterWaiting` before and after a sleep of the host. Harmless if
        /// nothing is due.
        ///
        /// - Returns: `timedOut` if the host is to continue. `stopped` if the loop was stopped: then the host may end
        ///   its own loop. `finished` if nothing is left in the mode, or the loop has ended; requests of other threads
        ///   are still served by later calls.
        @available(*, noasync, message: "a run loop blocks its thread; call this from the host's loop")
        @discardableResult
        public func run(in mode: Mode = .default) -> RunResult {
            let hasSlept = loop.owner.noticesUse && mode == loop.runs.hostWait?.mode
            awake()
            guard !loop.hasEnded else { return .finished }
            // A copy: a handler may run the guest again.
            var isAnnounced = isSleepAnnounced
            isSleepAnnounced = false
            let result = loop.runForHost(in: mode, afterSleep: hasSlept, isAnnounced: &isAnnounced)
            isSleepAnnounced = isAnnounced
            prepareWait(in: mode)
            return result
        }

        /// Prepares for a wait of the host in `mode`: the descriptor becomes readable when something is due there.
        ///
        /// Call this method before the host waits, where the host has a place for it: a prepare handle of libuv,
        /// `prepare` of a source of GLib. Then uses of the loop between its runs cost no wake-up. Call it also in a
        /// handler that is about to run the host nested, because ``run(in:)`` has prepared for no wait before it
        /// returns. At most one system call; O(number of signalled sources and parked descriptors).
        ///
        /// - Returns: the date at which the descriptor becomes readable if nothing else happens before;
        ///   ``Instant/distantPast`` if it is readable now, and ``Instant/distantFuture`` if nothing has a date. A host
        ///   that polls the descriptor does not need it.
        @discardableResult
        public func prepare(in mode: Mode = .default) -> Instant {
            // The last preparation may still hold. The cancellation of a delayed call is not noticed as a use.
            let holds =
                loop.isUnused && mode == loop.runs.hostWait?.mode && !loop.hasMail
                && loop.nextDeadline(in: mode) == date
            if !holds { prepareWait(in: mode) }
            // The date of the alarm may have passed.
            return loop.hasCome(date) ? .distantPast : date
        }

        private func prepareWait(in mode: Mode) {
            awake()
            guard !loop.hasEnded else { return date = .distantFuture }
            loop.runs.hostWait = (mode, loop.runs.innermost?.number)
            date = loop.dateOfWork(in: mode)
            if date != .distantPast, !loop.mailbox.fallAsleep() { date = .distantPast }
            assert(date != .distantPast || !loop.mailbox.isAsleep, "a loop with work to do is said to sleep")
            loop.driver.setAlarm(to: date)
            loop.owner.noticesUse = date != .distantPast
        }

        private func awake() {
            loop.owner.noticesUse = false
            loop.checkThread()
            loop.mailbox.wakeUp()
        }
    }

    /// Has another loop, the host, wait for this one and run it.
    ///
    /// While the guest exists, the host runs this loop with it; see ``Guest``. On the loop's thread.
    ///
    /// - Parameter mode: the mode of the host's first wait.
    /// - Precondition: the loop has no other guest.
    public func makeGuest(in mode: Mode = .default) -> Guest {
        checkThread()
        return Guest(self, mode)
    }

    /// Returns the date of the next work in `mode`, apart from mail and ready descriptors; `distantPast` if there is
    /// work now.
    func dateOfWork(in mode: Mode) -> Instant {
        if !parked.isEmpty { unpark(for: mode) }
        if !ready.isEmpty || hasBlocks(for: mode) || runs.isStopPending { return .distantPast }
        if !signals.isEmpty, signals.hasDue(where: { canServe($0, in: mode) }) { return .distantPast }
        return nextDeadline(in: mode)
    }

    /// The mode in which the thread is now: the mode of the host's wait, also if a handler has begun it, or of the
    /// innermost run; `nil` without either.
    var modeOfThread: Mode? {
        if let hostWait = runs.hostWait, hostWait.run == runs.innermost?.number { return hostWait.mode }
        return runs.innermost?.mode
    }

    private func nextDeadline(in mode: Mode) -> Instant { timers.nextDeadline(in: mode) ?? .distantFuture }

    private func canServe(_ source: Source, in mode: Mode) -> Bool {
        source.membership.contains(mode) && !source.isCalling && !source.isHeldBack(in: self)
    }
}

@available(*, unavailable, message: "a guest belongs to its loop's thread; other threads may poll its descriptor")
extension RunLoop.Guest: Sendable {}
