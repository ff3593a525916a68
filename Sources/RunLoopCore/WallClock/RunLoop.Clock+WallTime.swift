extension RunLoop.Clock {
    /// Suspends the task until the wall clock shows `date`, or until the next pass if it does already.
    ///
    /// The sleep follows the wall clock as a ``WallTimer`` does: when the clock is set, or the machine has slept, it
    /// ends by the new time, and never before the clock shows the date. Otherwise like ``sleep(until:tolerance:)``.
    /// O(log n), and a timer.
    public nonisolated(nonsending) func sleep(untilWallTime date: RunLoop.WallTime) async throws {
        try await sleep(untilNext: SingleDate(date: date), after: .distantPast)
    }

    /// Suspends the task until the next date of a schedule of the wall clock.
    ///
    /// ```swift
    /// var last: RunLoop.WallTime?
    /// while let date = try await loop.clock.sleep(untilNext: .daily(at: TimeOfDay(hour: 6)), after: last) {
    ///     backUp()
    ///     last = date
    /// }
    /// ```
    ///
    /// The sleep finds and follows the date like a ``WallTimer`` with ``WallTimer/MissedDates/runEach``. A clock that
    /// is set back does not bring the last date twice in a row if `date` is given. A date that has passed ends the
    /// sleep in the next pass. Otherwise like ``sleep(untilWallTime:)``.
    ///
    /// - Parameters:
    ///   - schedule: the dates.
    ///   - date: the date after which to look, for example the last returned one. The default, now, passes over the
    ///     dates that have come meanwhile.
    /// - Returns: the date; `nil` at once if there is none.
    @discardableResult
    public nonisolated(nonsending) func sleep(
        untilNext schedule: some WallSchedule, after date: RunLoop.WallTime? = nil
    ) async throws -> RunLoop.WallTime? {
        let sleep = WallSleep(on: self, until: schedule, after: date)
        try await sleep.wait()
        return sleep.date
    }
}

/// The wait of a task for a wall timer.
private final class WallSleep: TaskWait, @unchecked Sendable {
    // Unchecked as in `TaskWait`.
    private let schedule: any WallSchedule
    private let start: RunLoop.WallTime?
    private let modes: RunLoop.Modes
    private var timer: WallTimer?
    private(set) var date: RunLoop.WallTime?

    init(on clock: RunLoop.Clock, until schedule: any WallSchedule, after date: RunLoop.WallTime?) {
        (self.schedule, start, modes) = (schedule, date, clock.modes)
        super.init(clock.remote)
    }

    override var purpose: String? { timer?.fireDate.map { "sleeps until \($0)" } }

    override func begin(in loop: RunLoop) {
        let timer = WallTimer(schedule, after: start) { [unowned self] timer in
            date = timer.fireDate
            timer.invalidate()
        }
        timer.missedDates = .runEach
        timer.name = "sleep"
        // Called also when the schedule has no date, and when the loop ends.
        timer.invalidationHandler = { [self] in
            self.timer = nil
            end(throwing: loop.hasEnded ? remote.endError : nil)
        }
        self.timer = timer
        loop.add(timer, forMode: modes)
    }

    override func cancelled(in loop: RunLoop) {
        timer?.invalidationHandler = nil
        timer?.invalidate()
        timer = nil
    }
}
