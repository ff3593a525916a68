package import RunLoopCore

/// The clocks of a simulated machine, which run even while no process runs there.
package final class MachineClock: Sendable {
    /// A monotonic clock begins an hour in: a time near zero is less than some libraries subtract from it.
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
        var clock = WallClock(start: time)
        clock.set(to: time, at: timeline.now)
        state = Locked(State(clock: clock))
    }

    /// Notifies the threads of this process, from now on, when the clock is set.
    func begins(in process: Timeline.Process) {
        state.withLock { $0.processes.append(process) }
    }

    /// The process has ended.
    func ends(in process: Timeline.Process) {
        state.withLock { $0.processes.removeAll { $0 === process } }
    }

    /// The time that the clock shows; setting it simulates a person or a time server.
    package var time: RunLoop.WallTime {
        get { state.withLock { $0.clock.time(at: timeline.now) } }
        set { change { clock, now in clock.set(to: newValue, at: now) } }
    }

    var slept: Duration { state.withLock(\.slept) }

    /// The machine sleeps: the clock goes forward, and virtual time stands still.
    func sleep(for duration: Duration) {
        state.withLock { $0.slept += duration }
        time = time + duration
    }

    func instant(of time: RunLoop.WallTime) -> RunLoop.Instant { state.withLock { $0.clock.instant(of: time) } }

    /// Makes the clock too fast by so many billionths, or too slow if they are negative.
    package func setDrift(billionths: Int64) {
        require(billionths > -1_000_000_000, "a clock that drifts still goes forward; set its time instead")
        change { clock, now in clock.setDrift(billionths, at: now) }
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
