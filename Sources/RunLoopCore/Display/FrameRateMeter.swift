/// Measures once a second how often frames are shown.
///
/// Give it the timestamp of every call of a display link:
///
/// ```swift
/// var meter = FrameRateMeter()
/// DisplayLink.scheduledDisplayLink { link in
///     if let reading = meter.frame(at: link.timestamp) { print(reading.text) }
/// }
/// ```
///
/// A value and `Sendable`; O(1) per frame.
public struct FrameRateMeter: Sendable {
    private let second: Duration
    private var last: RunLoop.Instant?
    private var count = 0

    /// A meter that has seen no frame.
    public init() {
        self.init(second: .seconds(1))
    }

    /// A meter for a replay at another scale, where a second of the display takes this long.
    package init(second: Duration) {
        self.second = second
    }

    /// Counts a frame. The first frame only starts the count.
    ///
    /// - Parameter timestamp: the time of the frame, not before the frame before.
    /// - Returns: the rate if at least a second has passed since the last reading: the frames since then, divided by
    ///   the time.
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

    /// A measured rate, with a text and a colour to show it: red at 12 frames per second or fewer, green at 60.
    public struct Reading: Sendable, Hashable {
        /// Frames per second.
        public let framesPerSecond: Double

        /// The rate, rounded: "60 FPS".
        public var text: String { "\(Int(framesPerSecond.rounded())) FPS" }

        /// The colour's hue, from 0 to 1: 0.27 × (rate / 60 − 0.2).
        public var hue: Double { min(max(0.27 * (framesPerSecond / 60 - 0.2), 0), 1) }

        /// The colour's saturation, from 0 to 1.
        public var saturation: Double { 1 }

        /// The colour's brightness, from 0 to 1.
        public var brightness: Double { 0.9 }

        /// The colour as red, green and blue.
        public var rgb: (red: UInt8, green: UInt8, blue: UInt8) {
            // The hue is a circle: each component is full on one third of it and fades on the sixths beside that.
            func component(_ shift: Double) -> UInt8 {
                let angle = (hue * 6 + shift).truncatingRemainder(dividingBy: 6)
                let fade = min(max(min(angle, 4 - angle), 0), 1)
                return UInt8((brightness * (1 - saturation * fade) * 255).rounded())
            }
            return (component(5), component(3), component(1))
        }
    }
}
