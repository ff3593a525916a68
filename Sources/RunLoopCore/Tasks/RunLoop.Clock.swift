extension RunLoop {
    /// The clock of a loop, for tasks: real time, or the virtual time of a simulation.
    ///
    /// ```swift
    /// let clock = loop.remote.clock()
    /// try await clock.sleep(for: .seconds(1))
    /// for await _ in AsyncTimerSequence(interval: .seconds(2), clock: clock) { poll() }
    /// ```
    ///
    /// A sleep waits in the loop's timer queue, next to the timers, and ends while the loop runs in one of the clock's
    /// modes. A task that sleeps on a clock of the default mode stays asleep while the user drags. Sleeps never end
    /// early. Sleeps with equal ends end in the order in which they began. The tasks resume with the blocks of the
    /// pass, after the timers that are due in it. A sleep keeps its modes from being empty, as a timer does. A value
    /// and `Sendable`; any thread.
    ///
    /// Source: Swift Evolution SE-0329.
    public struct Clock: _Concurrency.Clock, Sendable {
        /// A handle by which any thread may send requests to the loop.
        public let remote: Remote

        /// The modes in which a sleep ends.
        public let modes: Modes

        let sleeps: SleepPool

        /// The time on the loop's clock.
        public var now: Instant { remote.now }

        /// The resolution of the clock: a nanosecond. Timers of the real world are as precise as the kernel.
        public var minimumResolution: Duration { .nanoseconds(1) }

        /// Suspends the task until the date, or not at all if it has passed.
        ///
        /// The task waits on the executor on which it called this method. Allocates nothing; O(log n).
        ///
        /// - Parameters:
        ///   - deadline: the earliest end.
        ///   - tolerance: the time by which the sleep may end later, so that the loop wakes up less often. The default
        ///     is zero. Like a timer, the sleep ends earlier if the loop is awake anyway.
        /// - Throws: `CancellationError` as soon as the task is cancelled, and also if it was before; or
        ///   ``RunLoop/WaitError`` if the loop has ended.
        public nonisolated(nonsending) func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
            try await Sleep.sleep(on: self, until: deadline, now: now, tolerance: tolerance ?? .zero)
        }

        /// Suspends the task for this long. Otherwise like ``sleep(until:tolerance:)``.
        public nonisolated(nonsending) func sleep(for duration: Duration, tolerance: Duration? = nil) async throws {
            let now = now
            try await Sleep.sleep(on: self, until: now + duration, now: now, tolerance: tolerance ?? .zero)
        }
    }

    /// The loop's clock for tasks that sleep in the common modes. Other threads use ``Remote/clock(inModes:)``.
    public var clock: Clock { remote.clock() }
}

extension RunLoop.Remote {
    /// Returns the loop's clock.
    ///
    /// - Parameter modes: the modes in which sleeps end. The default is the common modes.
    public func clock(inModes modes: RunLoop.Modes = .common) -> RunLoop.Clock {
        require(!modes.isEmpty, "a clock needs a mode; without any, no sleep would ever end")
        return RunLoop.Clock(remote: self, modes: modes, sleeps: executor(inModes: modes).sleeps)
    }
}

extension RunLoop.Clock: Identifiable {
    /// The identity of the loop whose time a clock shows. A value and `Sendable`.
    public struct ID: Hashable, Sendable {
        // Kept, so that no later loop takes its address.
        fileprivate let mailbox: Mailbox<RunLoop>

        public static func == (left: ID, right: ID) -> Bool { left.mailbox === right.mailbox }

        public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(mailbox)) }
    }

    /// The identity of the clock's loop, regardless of modes: dates of clocks with equal identities can be compared.
    public var id: ID { ID(mailbox: remote.mailbox) }
}
