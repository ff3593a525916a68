import RunLoopKit

extension FrameRateMeter.Reading {
    /// The colour's hue, from 0 to 1: red at 12 frames per second or fewer, green at 60.
    var hue: Double { min(max(0.27 * (framesPerSecond / 60 - 0.2), 0), 1) }

    /// The colour's saturation, from 0 to 1.
    var saturation: Double { 1 }

    /// The colour's brightness, from 0 to 1.
    var brightness: Double { 0.9 }

    /// The colour as red, green and blue.
    var rgb: (red: UInt8, green: UInt8, blue: UInt8) {
        // The hue runs around a circle; each component is full on a third of it, and fades on the sixths beside.
        func component(_ shift: Double) -> UInt8 {
            let angle = (hue * 6 + shift).truncatingRemainder(dividingBy: 6)
            let fade = min(max(min(angle, 4 - angle), 0), 1)
            return UInt8((brightness * (1 - saturation * fade) * 255).rounded())
        }
        return (component(5), component(3), component(1))
    }
}
