import RunLoopKit

/// When a key expires: on the calendar, for clients and files, and on the loop's clock, for the timer.
struct Expiry: Equatable {
    /// Milliseconds since 1970.
    let date: Int
    let instant: RunLoop.Instant
}

/// The calendar beside the loop's clock.
///
/// A time to live is counted on the loop's clock, which nobody can set. A date is converted when it comes in, and what is
/// kept in a file is a date.
struct WallClock {
    let loop: RunLoop
    /// Nanoseconds since 1970.
    let read: () -> Int64

    static func system(_ loop: RunLoop) -> WallClock {
        WallClock(loop: loop) { loop.wallTime.nanoseconds }
    }

    /// Milliseconds since 1970.
    var now: Int { Int(read() / 1_000_000) }

    /// In so many milliseconds; `nil` if no calendar in 64 bits has that day.
    func expiry(after milliseconds: Int) -> Expiry? {
        let (date, overflow) = now.addingReportingOverflow(milliseconds)
        return overflow ? nil : Expiry(date: date, instant: loop.now + .milliseconds(milliseconds))
    }

    /// On a date. What is beyond the loop's clock, 292 years, never comes.
    func expiry(at date: Int) -> Expiry {
        // The last of all dates stands for none.
        Expiry(date: min(date, Store.never - 1), instant: loop.now + (.milliseconds(date) - .nanoseconds(read())))
    }
}
