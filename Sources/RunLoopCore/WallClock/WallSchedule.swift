/// The dates at which a ``WallTimer`` fires, by the wall clock.
///
/// RunLoopCalendar has `CalendarSchedule`, with times of day, days of the week and cron expressions. A schedule of your
/// own returns the next of its dates. Schedules are `Sendable`, and called on the thread of the timer's loop.
public protocol WallSchedule: Sendable {
    /// Returns the first date after `time`; `nil` if there is none. Must be later than `time`, and always equal for
    /// equal arguments.
    func next(after time: RunLoop.WallTime) -> RunLoop.WallTime?
}

struct SingleDate: WallSchedule {
    let date: RunLoop.WallTime

    func next(after time: RunLoop.WallTime) -> RunLoop.WallTime? { time < date ? date : nil }
}

extension WallSchedule {
    /// Delays each date by a time that depends on a name, so that programs with the same dates do not all begin at
    /// once.
    ///
    /// ```swift
    /// let host = ProcessInfo.processInfo.hostName
    /// let backups = CalendarSchedule.daily(at: TimeOfDay(hour: 3))
    ///     .delayed(upTo: .seconds(3600), by: "backup on \(host)")
    /// ```
    ///
    /// The delay is at random for each name, spread evenly, and stays the same: for all dates, in each process, on each
    /// machine, and in a simulation. Dates keep their distances, and none is lost or repeated by a new start. systemd
    /// calls this a fixed random delay. A delay may lead past a change of a zone's clocks. O(1) beside the schedule's
    /// own cost; any thread.
    ///
    /// - Parameters:
    ///   - limit: the upper bound of the delay, which is shorter.
    ///   - name: distinguishes the programs that share the dates, for example by job and host.
    /// - Precondition: the limit is longer than zero.
    public func delayed(upTo limit: Duration, by name: String) -> some WallSchedule {
        require(limit > .zero, "the limit of a schedule's delay is longer than zero, not \(limit)")
        return DelayedSchedule(base: self, delay: .nanoseconds(Self.part(of: limit.nanoseconds, for: name)))
    }

    /// Returns a number below `limit`, the same for equal names in each process, unlike the hash of a `String`.
    private static func part(of limit: Int64, for name: String) -> Int64 {
        // FNV-1a, whose bits the steps of SplitMix64 spread.
        var hash = name.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x0100_0000_01b3 }
        hash = (hash ^ (hash >> 30)) &* 0xbf58_476d_1ce4_e5b9
        hash = (hash ^ (hash >> 27)) &* 0x94d0_49bb_1331_11eb
        return Int64((hash ^ (hash >> 31)).multipliedFullWidth(by: UInt64(limit)).high)
    }
}

private struct DelayedSchedule<Base: WallSchedule>: WallSchedule {
    let base: Base
    let delay: Duration

    func next(after time: RunLoop.WallTime) -> RunLoop.WallTime? { base.next(after: time - delay).map { $0 + delay } }
}
