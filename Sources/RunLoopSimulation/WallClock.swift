internal import RunLoopCore

/// The wall clock of a simulation: it follows the virtual time, faster or slower if it drifts, and is set by script.
struct WallClock {
    /// The instant when it was last set, and the time that it then showed.
    private var base: (instant: RunLoop.Instant, time: RunLoop.WallTime)
    /// How much it is too fast, in billionths.
    private var drift: Int64 = 0

    private static let billion: Int128 = 1_000_000_000

    init(start: RunLoop.WallTime) {
        base = (RunLoop.Instant(nanoseconds: 0), start)
    }

    func time(at instant: RunLoop.Instant) -> RunLoop.WallTime {
        let elapsed = Int128(instant.nanoseconds) - Int128(base.instant.nanoseconds)
        let shown = Int128(base.time.nanoseconds) + elapsed + floor(elapsed * Int128(drift), by: Self.billion)
        return RunLoop.WallTime(nanoseconds: Int64(clamping: shown))
    }

    /// The first instant at which it shows `time` or more.
    func instant(of time: RunLoop.WallTime) -> RunLoop.Instant {
        let distance = Int128(time.nanoseconds) - Int128(base.time.nanoseconds)
        let elapsed = -floor(-distance * Self.billion, by: Self.billion + Int128(drift))
        return RunLoop.Instant(nanoseconds: Int64(clamping: Int128(base.instant.nanoseconds) + elapsed))
    }

    private func floor(_ number: Int128, by divisor: Int128) -> Int128 {
        let (quotient, rest) = number.quotientAndRemainder(dividingBy: divisor)
        return rest < 0 ? quotient - 1 : quotient
    }

    mutating func set(to time: RunLoop.WallTime, at instant: RunLoop.Instant) {
        base = (instant, time)
    }

    mutating func setDrift(_ drift: Int64, at instant: RunLoop.Instant) {
        set(to: time(at: instant), at: instant)
        self.drift = drift
    }
}
