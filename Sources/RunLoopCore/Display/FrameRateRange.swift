/// The range of rates at which a display link may be called, in calls per second, and the preferred one.
public struct FrameRateRange: Sendable, Hashable {
    /// The lowest acceptable rate; 0 for any.
    public let minimum: Double

    /// The highest rate.
    public let maximum: Double

    /// The preferred rate; 0 for the highest.
    public let preferred: Double

    /// No preference: the rate of the display.
    public static let `default` = FrameRateRange(minimum: 0, maximum: 0)

    /// Creates a range of rates.
    ///
    /// - Parameters:
    ///   - minimum: the lowest acceptable rate, not negative.
    ///   - maximum: the highest rate, not less than `minimum`.
    ///   - preferred: a rate in the range, or 0 for the highest.
    public init(minimum: Double, maximum: Double, preferred: Double = 0) {
        require(
            minimum >= 0 && minimum <= maximum,
            "a range of frame rates goes from a minimum, not negative, up to a maximum, not from \(minimum) "
                + "to \(maximum)")
        require(
            preferred == 0 || (preferred >= minimum && preferred <= maximum),
            "the preferred frame rate \(preferred) is not between \(minimum) and \(maximum); give 0 for no preference")
        self.minimum = minimum
        self.maximum = maximum
        self.preferred = preferred
    }

    /// Returns the n for which a call in every n-th frame suits the range best, at this number of frames per second.
    ///
    /// The rate `framesPerSecond / divisor` is in the range if any such rate is. Of the rates in the range, or of all
    /// if none is, it is the closest to the preferred rate; without a preferred rate it is the highest in the range, or
    /// the closest to the range. Of two that are equally close, the higher.
    func divisor(for framesPerSecond: Int) -> Int64 {
        let target = preferred > 0 ? preferred : maximum
        guard target > 0 else { return 1 }
        // The rates on both sides of the target: one at or above it, if the display has any, and one below.
        let above = Int64(min(max((Double(framesPerSecond) / target).rounded(.down), 1), 1e9))
        let (high, low) = (Double(framesPerSecond) / Double(above), Double(framesPerSecond) / Double(above + 1))
        if contains(high) != contains(low) { return contains(high) ? above : above + 1 }
        return distance(to: high) <= distance(to: low) ? above : above + 1
    }

    private func contains(_ rate: Double) -> Bool { minimum <= rate && rate <= maximum }

    private func distance(to rate: Double) -> Double {
        preferred > 0 ? (rate - preferred).magnitude : max(rate - maximum, minimum - rate, 0)
    }
}
