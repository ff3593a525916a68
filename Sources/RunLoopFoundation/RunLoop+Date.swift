public import FoundationEssentials
@_spi(Ports) public import RunLoopKit

// Foundation's spellings, with dates and seconds instead of instants and durations.

extension RunLoop {
    /// Returns the instant on the loop's clock that corresponds to `date`. Later changes of the wall clock do not move
    /// it.
    ///
    /// In a simulation, time begins at Foundation's reference date, so dates are the same in every run.
    ///
    /// - Precondition: `date` is a number.
    public func instant(of date: Date) -> Instant {
        now + RunLoopFoundation.duration(seconds: date.timeIntervalSince(wallClock))
    }

    /// Returns the date that corresponds to an instant, given the current setting of the wall clock.
    public func date(of instant: Instant) -> Date {
        guard instant != .distantFuture else { return .distantFuture }
        guard instant != .distantPast else { return .distantPast }
        return wallClock.addingTimeInterval((instant - now) / .seconds(1))
    }

    private var wallClock: Date { Date(world.wallTime) }

    /// Runs the loop in the default mode until the date; see ``/RunLoopKit/RunLoop/run(until:)``.
    @available(*, noasync, message: "a run loop blocks its thread; await withLoop, or run it on a LoopThread")
    public func run(until limit: Date) {
        run(until: instant(of: limit))
    }

    /// Runs the loop in `mode` until it has handled a source, or until the date; see
    /// ``/RunLoopKit/RunLoop/run(mode:before:)``.
    @available(*, noasync, message: "a run loop blocks its thread; await withLoop, or run it on a LoopThread")
    @discardableResult
    public func run(mode: Mode, before limit: Date) -> Bool {
        run(mode: mode, before: instant(of: limit))
    }

    /// Runs the loop in `mode` as ``run(mode:before:)`` does, and returns no result.
    @available(*, noasync, message: "a run loop blocks its thread; await withLoop, or run it on a LoopThread")
    public func acceptInput(forMode mode: Mode, before limit: Date) {
        run(mode: mode, before: limit)
    }
}

/// Returns a duration of `seconds`; values beyond the range of a loop's clock mean never.
func duration(seconds: TimeInterval) -> Duration {
    require(
        !seconds.isNaN, "a time in seconds is a number, not NaN; to park a timer use Date.distantFuture")
    let longest = 9_000_000_000.0
    return .seconds(max(-longest, min(longest, seconds)))
}

extension Timer {
    /// Creates a timer that fires at `date`, and then every `interval` seconds if it repeats.
    ///
    /// - Precondition: `interval` is a finite number. Zero or less is taken as 0.0001 s.
    @available(*, noasync, message: "it asks the thread for its loop; write Timer(fire: loop.instant(of: date), …)")
    public convenience init(
        fire date: Date, interval: TimeInterval, repeats: Bool, block: @escaping (Timer) -> Void,
        file: StaticString = #fileID, line: UInt32 = #line
    ) {
        self.init(
            fire: RunLoop.current.instant(of: date), interval: Timer.duration(of: interval), repeats: repeats,
            block: block, file: file, line: line)
    }

    /// Creates a timer that fires `interval` seconds from now, and then at that interval if it repeats.
    ///
    /// - Precondition: `interval` is a finite number. Zero or less is taken as 0.0001 s.
    @available(
        *, noasync, message: "it asks the thread for its loop; write Timer(fire: loop.now + .seconds(interval), …)"
    )
    public convenience init(
        timeInterval interval: TimeInterval, repeats: Bool, block: @escaping (Timer) -> Void,
        file: StaticString = #fileID, line: UInt32 = #line
    ) {
        self.init(
            timeInterval: Timer.duration(of: interval), repeats: repeats, block: block, file: file, line: line)
    }

    /// Creates a timer and adds it to the current loop in the default mode.
    ///
    /// - Precondition: `interval` is a finite number. Zero or less is taken as 0.0001 s.
    @available(
        *, noasync,
        message: "it asks the thread for its loop; write loop.add(Timer(fire: loop.now + .seconds(interval), …), …)"
    )
    @discardableResult
    public static func scheduledTimer(
        withTimeInterval interval: TimeInterval, repeats: Bool, block: @escaping (Timer) -> Void,
        file: StaticString = #fileID, line: UInt32 = #line
    ) -> Timer {
        scheduledTimer(
            withTimeInterval: duration(of: interval), repeats: repeats, block: block, file: file, line: line)
    }

    private static func duration(of interval: TimeInterval) -> Duration {
        require(
            interval.isFinite,
            "a timer's interval is a finite number of seconds; for a timer that never fires use Date.distantFuture")
        return RunLoopFoundation.duration(seconds: interval)
    }
}
