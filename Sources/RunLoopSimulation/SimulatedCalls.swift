internal import CShims
internal import Glibc
@_spi(Ports) internal import RunLoopCore

/// The answers of a simulation to its threads' calls of the C library, in programs that link RunLoopTesting.
enum SimulatedCalls {
    /// Installs the answers to the calls.
    static let installation: Void = {
        let calls = rlk_simulated_calls(
            time: { time(of: $0) },
            sleep: { clock, time in caller.timeline.work(caller.thread, until: instant(of: clock, time)) },
            begin_wait: { caller.timeline.beginWait(caller.thread, at: UInt(bitPattern: $0), bits: $1) },
            call_off_wait: { AddressWaits.end(of: caller.thread) },
            wait_until: { caller.timeline.waitForSignal(caller.thread, until: instant(of: $0, $1)) ? 1 : 0 },
            wait_at_most: { caller.timeline.waitForSignal(caller.thread, atMostUntil: instant(of: $0, $1)) },
            wait: { awaited in
                let mayBeOutside = awaited != rlk_awaits_program
                caller.timeline.waitForSignal(caller.thread, of: words(for: awaited), mayBeOutside: mayBeOutside)
            },
            wait_for_lock: { lock, bits, findHolder, limit in
                let end = limit.map { instant(of: $0.pointee.clock, $0.pointee.time) }
                let found = Timeline.FoundLock(address: lock!, findHolder: findHolder!)
                return caller.timeline.waitForLock(caller.thread, found, bits: bits, until: end)
            },
            join: { caller.timeline.join($0, from: caller.thread) },
            random: { caller.world.fill(UnsafeMutableRawBufferPointer(start: $0, count: $1)) },
            is_on_host: { surroundings == nil ? 0 : 1 },
            variable: { name in name.flatMap { surroundings!.variables.value(of: $0) } },
            set_variable: { surroundings!.variables.set($0!, $1) },
            put_variable: { surroundings!.variables.put($0!) },
            clear_variables: { surroundings!.variables.removeAll() },
            environment: { surroundings!.variables.makeTable() },
            host_name: { surroundings!.hostName },
            user: { surroundings!.userNumber },
            group: { surroundings!.groupNumber },
            groups: { room, count in
                let groups = surroundings!.furtherGroups
                for (index, group) in groups.prefix(Int(max(0, count))).enumerated() { room?[index] = group }
                return Int32(groups.count)
            },
            users: { length in
                let users = surroundings!.users
                length?.pointee = users.count
                let copy = UnsafeMutableRawBufferPointer(start: malloc(users.count), count: users.count)
                copy.copyBytes(from: users)
                return copy.baseAddress?.assumingMemoryBound(to: CChar.self)
            },
            escape: { caller.timeline.noteEscape(of: caller.thread, String(cString: $0!)) },
            signal: { Int32(AddressWaits.signal(UInt(bitPattern: $0), bits: $1, most: Int($2))) })
        rlk_answer_calls(calls)
    }()

    private static var caller: (world: VirtualWorld, timeline: Timeline, thread: Timeline.Thread) {
        guard let loop = RunLoop.installed, let driver = loop.virtualDriver, let world = loop.world as? VirtualWorld
        else { fatalError("a thread that has no simulated loop asks a simulation") }
        loop.callTakesTime()
        return (world, driver.timeline, driver.thread)
    }

    private static func words(for awaited: rlk_awaited) -> String {
        switch awaited {
        case rlk_awaits_condition: "a condition"
        case rlk_awaits_semaphore: "a semaphore"
        default: "a futex"
        }
    }

    /// The surroundings of the calling thread; `nil` for the real ones.
    private static var surroundings: (any SimulatedSurroundings)? {
        (RunLoop.installed?.world as? VirtualWorld)?.surroundings
    }

    private static func time(of clock: rlk_clock) -> Int64 {
        let (world, timeline, thread) = caller
        if rlk_take_step() != 0, let rest = timeline.restAfterSteps() {
            timeline.work(thread, until: timeline.now + rest)
        }
        return switch clock {
        case rlk_clock_wall: world.wallTime.nanoseconds
        case rlk_clock_processor: timeline.now.nanoseconds
        case rlk_clock_boot: (timeline.now + MachineClock.monotonicStart + world.clock.slept).nanoseconds
        default: (timeline.now + MachineClock.monotonicStart).nanoseconds
        }
    }

    /// Returns the instant at which a clock will show `time`.
    private static func instant(of clock: rlk_clock, _ time: Int64) -> RunLoop.Instant {
        let shown = RunLoop.Instant(nanoseconds: time)
        return switch clock {
        case rlk_clock_wall: caller.world.instant(of: RunLoop.WallTime(nanoseconds: time))
        case rlk_clock_processor: shown
        case rlk_clock_boot: shown - MachineClock.monotonicStart - caller.world.clock.slept
        default: shown - MachineClock.monotonicStart
        }
    }
}
