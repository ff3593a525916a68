/// When a ``WallTimer`` fires, by the wall clock.
///
/// RunLoopCalendar has `CalendarSchedule`, for times of day, days of the week and cron expressions. A schedule of your
/// own says which of its dates comes next. It is `Sendable`, and asked on the thread of its timer's loop.
public protocol WallSchedule: Sendable {
    /// The first date after `time`; `nil` if there is none. The same answer for the same question, and later than `time`.
    func next(after time: RunLoop.WallTime) -> RunLoop.WallTime?
}

struct SingleDate: WallSchedule {
    let date: RunLoop.WallTime

    func next(after time: RunLoop.WallTime) -> RunLoop.WallTime? { time < date ? date : nil }
}
