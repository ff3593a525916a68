internal import FoundationEssentials
@_spi(Ports) public import RunLoopKit

// Two kinds of time, both in seconds. An instant counts from the beginning of 1970. A local time is the reading of the
// zone's clocks, counted as if they had shown the beginning of 1970 at zero and had never been put forward or back. At
// an instant the clocks show the instant plus the zone's offset. The day rule and the minutes use local times.

extension CalendarSchedule {
    public func next(after time: RunLoop.WallTime) -> RunLoop.WallTime? {
        let second = time.secondsSince1970
        let isEveryHour = minutes.allSatisfy { $0 == minutes[0] }
        guard let next = isEveryHour ? nextShown(after: second) : nextReached(after: second),
            next <= RunLoop.WallTime.distantFuture.secondsSince1970
        else { return nil }
        return RunLoop.WallTime(secondsSince1970: next)
    }

    /// A time longer than the difference of any two offsets, so that more distant instants cannot show the same time.
    private static let reach: Int64 = 2 * 86_400

    /// Returns the next date of a schedule for certain hours. A time happens when the clocks first show it, or a later
    /// one: at the end of a gap, and at the first time of two.
    private func nextReached(after second: Int64) -> Int64? {
        var latest = Int64.min
        var from = second - Self.reach
        while from <= second {
            let (offset, end) = timeZone.stretch(at: from)
            latest = max(latest, min(second, end - 1) + offset)
            from = end
        }
        guard let local = match(from: latest + 1) else { return nil }
        from = local - Self.reach
        while true {
            let (offset, end) = timeZone.stretch(at: from)
            let instant = max(from, local - offset)
            if instant < end { return instant }
            from = end
        }
    }

    /// Returns the next date of a schedule for every hour: a time happens whenever the clocks show it.
    private func nextShown(after second: Int64) -> Int64? {
        var from = second + 1
        while true {
            let (offset, end) = timeZone.stretch(at: from)
            guard let local = match(from: from + offset) else { return nil }
            if local - offset < end { return local - offset }
            // The clocks show no time before `from + offset` again once they are out of reach, and no time from there
            // to `local` matches.
            from = end - from < Self.reach ? end : max(end, local - Self.reach)
        }
    }

    /// Returns the first local time of the schedule at or after a local time.
    private func match(from local: Int64) -> Int64? {
        let minute = -(-local).dividedRoundingDown(by: 60)
        let today = minute.dividedRoundingDown(by: 24 * 60)
        guard var day = days.next(from: today) else { return nil }
        var time = day == today ? self.time(from: Int(minute - today * 24 * 60)) : self.time(from: 0)
        if time == nil, let later = days.next(from: today + 1) { (day, time) = (later, self.time(from: 0)) }
        return time.map { day * 86_400 + Int64($0) * 60 }
    }

    /// Returns the first time of day at or after a minute, in minutes since midnight.
    private func time(from minute: Int) -> Int? {
        let (hour, rest) = minute.quotientAndRemainder(dividingBy: 60)
        let left = minutes[hour] >> UInt64(rest)
        if left != 0 { return minute + left.trailingZeroBitCount }
        guard let later = minutes[(hour + 1)...].firstIndex(where: { $0 != 0 }) else { return nil }
        return later * 60 + minutes[later].trailingZeroBitCount
    }
}

extension TimeZone {
    /// Returns the offset at an instant, and the instant at which it may change next. Foundation's name for the change
    /// mentions daylight-saving time, but it is any change of the offset: in Apia, for example, the move across the
    /// date line.
    fileprivate func stretch(at second: Int64) -> (offset: Int64, end: Int64) {
        let date = Date(timeIntervalSince1970: TimeInterval(second))
        let change = nextDaylightSavingTimeTransition(after: date)
        return (
            Int64(secondsFromGMT(for: date)),
            // A change is after the date, which keeps the searches from standing still.
            change.map { max(Int64($0.timeIntervalSince1970.rounded()), second + 1) } ?? .max
        )
    }
}
