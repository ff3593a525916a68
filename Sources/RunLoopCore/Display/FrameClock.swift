/// A software display's frames: a grid of dates, with a fixed number of them in every second.
///
/// Frame k is at `start + ⌊k × 1 s / framesPerSecond⌋`. Every date is computed from the start in whole nanoseconds, so
/// no error accumulates. The grid extends to both sides of the start. Dates beyond the range of an instant are
/// ``RunLoop/Instant/distantFuture`` and ``RunLoop/Instant/distantPast``.
///
/// Links with equal clocks are called in the same frames. A clock is a value and `Sendable`.
public struct FrameClock: Sendable, Hashable {
    /// The number of frames in a second: a display link's maximum rate.
    public let framesPerSecond: Int

    /// The date of frame 0, on the clock of the loop that calls the links.
    public let start: RunLoop.Instant

    /// The duration of `framesPerSecond` frames, in nanoseconds.
    private let unit: Int64

    /// Creates a clock with a number of frames per second.
    ///
    /// - Parameters:
    ///   - framesPerSecond: the display's frames per second, from 24 to 240. The default is 60.
    ///   - second: the duration of a second of the display, at least a nanosecond per frame. Pass another one to replay
    ///     faster or slower.
    ///   - start: the date of frame 0; frames before it are on the same grid.
    public init(
        framesPerSecond: Int = 60, per second: Duration = .seconds(1),
        start: RunLoop.Instant = RunLoop.Instant(nanoseconds: 0)
    ) {
        require(
            (24...240).contains(framesPerSecond),
            "a frame clock has 24 to 240 frames per second, not \(framesPerSecond); "
                + "for fewer calls set the rate of the display link")
        unit = second.nanoseconds
        require(unit >= framesPerSecond, "a frame takes a nanosecond at least; give the display longer seconds")
        self.framesPerSecond = framesPerSecond
        self.start = start
    }

    /// The time between frames, to the attosecond. Dates are whole nanoseconds, so two in a row may be up to a
    /// nanosecond closer or farther apart.
    var framePeriod: Duration { .nanoseconds(unit) / framesPerSecond }

    /// Returns the date of a frame. O(1).
    func date(of frame: Int64) -> RunLoop.Instant {
        let offset = (Int128(frame) * Int128(unit)).dividedRoundingDown(by: Int128(framesPerSecond))
        return RunLoop.Instant(nanoseconds: Int64(clamping: Int128(start.nanoseconds) + offset))
    }

    /// Returns the latest frame whose date is not later than `now`. O(1).
    func frame(at now: RunLoop.Instant) -> Int64 {
        // ⌊k × unit / n⌋ ≤ elapsed is the same as k × unit ≤ (elapsed + 1) × n − 1, all numbers being whole.
        let elapsed = Int128(now.nanoseconds) - Int128(start.nanoseconds)
        let product = (elapsed + 1) * Int128(framesPerSecond) - 1
        return Int64(clamping: product.dividedRoundingDown(by: Int128(unit)))
    }

    /// Returns the first frame whose date is later than `now`. O(1).
    func frame(after now: RunLoop.Instant) -> Int64 {
        frame(at: now).saturatingAdding(1)
    }
}
