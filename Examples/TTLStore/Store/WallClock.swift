import RunLoopKit

/// The expiry of a key: on the calendar, for clients and files, and on the loop's clock, for the timer.
struct Expiry: Equatable {
    /// The date in milliseconds since 1970.
    let date: Int
    let instant: RunLoop.Instant
}

/// The calendar beside the loop's clock.
///
/// A time to live is counted on the loop's clock, which cannot be set. A date is converted when it is received, and
/// files contain dates.
struct WallClock {
    let loop: RunLoop
    /// Reads the nanoseconds since 1970.
    let read: () -> Int64

    static func system(_ loop: RunLoop) -> WallClock {
        WallClock(loop: loop) { loop.wallTime.nanoseconds }
    }

    /// The milliseconds since 1970.
    var now: Int { Int(read() / 1_000_000) }

    /// Returns the expiry after a number of milliseconds; `nil` if the day is beyond a calendar in 64 bits.
    func expiry(after milliseconds: Int) -> Expiry? {
        let (date, overflow) = now.addingReportingOverflow(milliseconds)
        return overflow ? nil : Expiry(date: date, instant: loop.now + .milliseconds(milliseconds))
    }

    /// Returns the expiry on a date. A date beyond the range of the loop's clock, 292 years, never comes.
    func expiry(at date: Int) -> Expiry {
        // The last of all dates stands for no expiry.
        Expiry(date: min(date, Store.never - 1), instant: loop.now + (.milliseconds(date) - .nanoseconds(read())))
    }
}
