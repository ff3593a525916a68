/// The rates, in calls per second, that a display link may be called at, and the one that it is best called at (R202).
public struct FrameRateRange: Sendable, Hashable {
    /// The lowest rate that will do; 0 if any does.
    public let minimum: Double

    /// The highest rate that is wanted.
    public let maximum: Double

    /// The rate that is best; 0 for the highest.
    public let preferred: Double

    /// No preference: the rate of the display.
    public static let `default` = FrameRateRange(minimum: 0, maximum: 0)

    /// A range of rates.
    ///
    /// - Parameters:
    ///   - minimum: not negative.
    ///   - maximum: not less than `minimum`.
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

    /// The n for which a call in every n-th frame serves the range best, at so many frames per second (R200, R202).
    ///
    /// The rate `framesPerSecond / divisor` is in the range if one is. Among those that are, or if none is among all,
    /// it is the nearest to the preferred one; without a preferred one, the highest in the range, or the nearest to the
    /// range. Of two that are equally near, the higher.
    func divisor(for framesPerSecond: Int) -> Int64 {
        let target = preferred > 0 ? preferred : maximum
        guard target > 0 else { return 1 }
        // The rates beside the target: one that is not below it, if the display has any, and one that is.
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
