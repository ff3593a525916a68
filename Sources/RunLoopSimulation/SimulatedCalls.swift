internal import CShims
internal import RunLoopCore

/// The answers of a simulation to calls of the C library by its threads. They come here in programs that link
/// RunLoopTesting.
enum SimulatedCalls {
    /// A monotonic clock begins an hour in: a time near zero is less than some libraries subtract from it.
    static let start = Duration.seconds(3_600)

    /// Takes the calls from now on.
    static let installation: Void = {
        let calls = rlk_simulated_calls(
            time: { time(of: $0) },
            sleep: { clock, time in caller.timeline.work(caller.thread, until: instant(of: clock, time)) },
            wait: { address, clock, time in
                let address = UInt(bitPattern: address)
                return caller.timeline.wait(caller.thread, at: address, until: instant(of: clock, time)) ? 1 : 0
            },
            random: { caller.world.fill(UnsafeMutableRawBufferPointer(start: $0, count: $1)) },
            signal: { AddressWaits.signal(UInt(bitPattern: $0), all: $1 != 0) })
        rlk_answer_calls(calls)
    }()

    private static var caller: (world: SimulatedWorld, timeline: Timeline, thread: Timeline.Thread) {
        guard let loop = RunLoop.installed, let driver = loop.virtualDriver, let world = loop.world as? SimulatedWorld
        else { fatalError("a thread that has no simulated loop asks a simulation") }
        loop.callTakesTime()
        return (world, driver.timeline, driver.thread)
    }

    private static func time(of clock: rlk_clock) -> Int64 {
        let (world, timeline, _) = caller
        return switch clock {
        case rlk_clock_wall: world.wallTime.nanoseconds
        case rlk_clock_processor: timeline.now.nanoseconds
        case rlk_clock_boot: (timeline.now + start + world.slept).nanoseconds
        default: (timeline.now + start).nanoseconds
        }
    }

    /// When a clock will show a time.
    private static func instant(of clock: rlk_clock, _ time: Int64) -> RunLoop.Instant {
        let shown = RunLoop.Instant(nanoseconds: time)
        return switch clock {
        case rlk_clock_wall: caller.world.instant(of: RunLoop.WallTime(nanoseconds: time))
        case rlk_clock_processor: shown
        case rlk_clock_boot: shown - start - caller.world.slept
        default: shown - start
        }
    }

    /// Calls `body` with the clocks of the real world.
    static func onRealTime<Result>(_ body: () -> Result) -> Result {
        let flag = rlk_set_simulated(nil)
        defer { rlk_set_simulated(flag) }
        return body()
    }
}

/// The waits of simulated threads for a signal at an address, with a limit: those of conditions and semaphores of the C
/// library.
enum AddressWaits {
    private final class Wait: Sendable {
        let timeline: Timeline
        let thread: Timeline.Thread
        let address: UInt

        init(_ timeline: Timeline, _ thread: Timeline.Thread, _ address: UInt) {
            (self.timeline, self.thread, self.address) = (timeline, thread, address)
        }
    }

    /// In the order in which they began.
    private static let all = Locked<[Wait]>([])

    fileprivate static func begin(_ timeline: Timeline, _ thread: Timeline.Thread, _ address: UInt) {
        all.withLock { $0.append(Wait(timeline, thread, address)) }
        rlk_count_simulated_wait(1)
    }

    fileprivate static func isWaiting(_ thread: Timeline.Thread) -> Bool {
        all.withLock { $0.contains { $0.thread === thread } }
    }

    /// Ends the wait of a thread, if it has one.
    ///
    /// - Returns: whether it had one, and was not signalled.
    @discardableResult
    static func end(_ thread: Timeline.Thread) -> Bool {
        let wasWaiting = all.withLock { waits in
            let index = waits.firstIndex { $0.thread === thread }
            if let index { waits.remove(at: index) }
            return index != nil
        }
        if wasWaiting { rlk_count_simulated_wait(-1) }
        return wasWaiting
    }

    static func signal(_ address: UInt, all isForAll: Bool) {
        let signalled = all.withLock { waits in
            let found = waits.filter { $0.address == address }
            let signalled = isForAll ? found : Array(found.prefix(1))
            waits.removeAll { wait in signalled.contains { $0 === wait } }
            return signalled
        }
        for wait in signalled {
            rlk_count_simulated_wait(-1)
            wait.timeline.endWork(wait.thread)
        }
    }
}

extension Timeline {
    /// Waits until an address is signalled, but not beyond a date.
    ///
    /// - Returns: whether it was signalled.
    fileprivate func wait(_ thread: Thread, at address: UInt, until date: RunLoop.Instant) -> Bool {
        AddressWaits.begin(self, thread, address)
        work(thread, until: date) { !AddressWaits.isWaiting(thread) }
        return !AddressWaits.end(thread)
    }

    /// Ends the work of a thread before its date.
    fileprivate func endWork(_ thread: Thread) {
        change { state in
            if case .until(_, wakeable: false) = thread.rest { thread.begin(.woke) }
            state.endOutsideWait()
        }
    }
}
