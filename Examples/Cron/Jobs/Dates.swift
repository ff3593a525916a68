import RunLoopCalendar
import RunLoopKit

/// The dates at which a job is to run.
enum Dates: WallSchedule, Hashable {
    /// At the dates of a line of crontab(5).
    case calendar(CalendarSchedule)
    /// Every `seconds` seconds, counted from the beginning of 1970: the dates are the same after a new start.
    case every(seconds: Int64)

    func next(after time: RunLoop.WallTime) -> RunLoop.WallTime? {
        switch self {
        case .calendar(let schedule): return schedule.next(after: time)
        case .every(let period):
            let (periods, rest) = time.secondsSince1970.quotientAndRemainder(dividingBy: period)
            let next = RunLoop.WallTime(secondsSince1970: (rest < 0 ? periods : periods + 1) * period)
            return next > time && next < .distantFuture ? next : nil
        }
    }
}

extension Dates: CustomStringConvertible {
    /// The dates in one line. Equal dates have equal texts.
    var description: String {
        switch self {
        case .calendar(let schedule): schedule.description
        case .every(let period): "every \(period)s"
        }
    }
}
