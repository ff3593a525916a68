/// Measures the rate at which frames are shown, once a second.
///
/// Pass the meter the timestamp of every call of a display link:
///
/// ```swift
/// var meter = FrameRateMeter()
/// DisplayLink.scheduledDisplayLink { link in
///     if let reading = meter.frame(at: link.timestamp) { print(reading) }
/// }
/// ```
///
/// A value and `Sendable`; O(1) per frame.
public struct FrameRateMeter: Sendable {
    private let second: Duration
    private var last: RunLoop.Instant?
    private var count = 0

    /// Creates a meter that has counted no frame.
    ///
    /// - Parameter second: the duration of a second of the display. Pass another one to replay faster or slower; see
    ///   ``FrameClock``.
    public init(second: Duration = .seconds(1)) {
        self.second = second
    }

    /// Counts a frame. The first frame only starts the count.
    ///
    /// - Parameter timestamp: the time of the frame, not earlier than the previous one.
    /// - Returns: the rate if at least a second has passed since the last reading: the number of frames since then,
    ///   divided by the time.
    public mutating func frame(at timestamp: RunLoop.Instant) -> Reading? {
        guard let last else {
            last = timestamp
            return nil
        }
        count += 1
        let delta = timestamp - last
        guard delta >= second else { return nil }
        defer {
            self.last = timestamp
            count = 0
        }
        return Reading(framesPerSecond: Double(count) / (delta / second))
    }

    /// A measured rate.
    public struct Reading: Sendable, Hashable, CustomStringConvertible {
        /// The number of frames per second.
        public let framesPerSecond: Double

        /// The rate, rounded: `60 FPS`.
        public var description: String { "\(Int(framesPerSecond.rounded())) FPS" }
    }
}
