@_spi(Ports) public import RunLoopCore

/// The clocks of a simulated machine, which run even while no process runs there.
@_spi(Ports) public final class MachineClock: Sendable {
    /// The start of the monotonic clock, an hour in: some libraries subtract more than a time near zero.
    static let monotonicStart = Duration.seconds(3_600)

    private let timeline: Timeline
    private let state: Locked<State>

    private struct State {
        var clock: WallClock
        var slept = Duration.zero
        /// The processes that use the clock.
        var processes: [Timeline.Process] = []
    }

    /// Creates a clock that shows `time` now.
    init(on timeline: Timeline, showing time: RunLoop.WallTime) {
        self.timeline = timeline
        state = Locked(State(clock: WallClock(base: (timeline.now, time))))
    }

    /// Notifies the threads of `process`, from now on, when the clock is set.
    func begins(in process: Timeline.Process) {
        state.withLock { $0.processes.append(process) }
    }

    func ends(in process: Timeline.Process) {
        state.withLock { $0.processes.removeAll { $0 === process } }
    }

    /// The time that the clock shows; setting it simulates a person or a time server.
    public var time: RunLoop.WallTime {
        get { state.withLock { $0.clock.time(at: timeline.now) } }
        set { change { clock, now in clock.base = (now, newValue) } }
    }

    /// The time for which the machine has slept.
    var slept: Duration { state.withLock(\.slept) }

    /// Puts the machine to sleep: the clock goes forward, and virtual time stands still.
    func sleep(for duration: Duration) {
        state.withLock { $0.slept += duration }
        time = time + duration
    }

    func instant(of time: RunLoop.WallTime) -> RunLoop.Instant { state.withLock { $0.clock.instant(of: time) } }

    /// Makes the clock fast by `billionths`, or slow if they are negative.
    public func setDrift(billionths: Int64) {
        require(billionths > -1_000_000_000, "a clock that drifts still goes forward; set its time instead")
        change { clock, now in
            clock.base = (now, clock.time(at: now))
            clock.drift = billionths
        }
    }

    private func change(_ body: (inout WallClock, RunLoop.Instant) -> Void) {
        let (isBack, processes) = state.withLock { state in
            let former = state.clock.time(at: timeline.now)
            body(&state.clock, timeline.now)
            return (state.clock.time(at: timeline.now) < former, state.processes)
        }
        if isBack { timeline.meet("a clock was set back", true) }
        for process in processes { timeline.wallClockWasSet(in: process) }
    }
}

/// The wall clock of a simulation, which follows the virtual time, faster or slower if it drifts, and is set by script.
private struct WallClock {
    /// The instant when the clock was last set, and the time that it then showed.
    var base: (instant: RunLoop.Instant, time: RunLoop.WallTime)
    /// The billionths by which the clock is fast.
    var drift: Int64 = 0

    private static let billion: Int128 = 1_000_000_000

    func time(at instant: RunLoop.Instant) -> RunLoop.WallTime {
        let elapsed = Int128(instant.nanoseconds) - Int128(base.instant.nanoseconds)
        let shown = Int128(base.time.nanoseconds) + elapsed + floor(elapsed * Int128(drift), by: Self.billion)
        return RunLoop.WallTime(nanoseconds: Int64(clamping: shown))
    }

    /// Returns the first instant at which the clock shows `time` or more.
    func instant(of time: RunLoop.WallTime) -> RunLoop.Instant {
        let distance = Int128(time.nanoseconds) - Int128(base.time.nanoseconds)
        let elapsed = -floor(-distance * Self.billion, by: Self.billion + Int128(drift))
        return RunLoop.Instant(nanoseconds: Int64(clamping: Int128(base.instant.nanoseconds) + elapsed))
    }

    private func floor(_ number: Int128, by divisor: Int128) -> Int128 {
        let (quotient, rest) = number.quotientAndRemainder(dividingBy: divisor)
        return rest < 0 ? quotient - 1 : quotient
    }
}
