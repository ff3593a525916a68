import Glibc
import RunLoopKit

/// Measures the rate of a display link and shows it.
final class Gauge {
    /// The time that the loop is kept busy in every frame, in milliseconds.
    var load = 0

    private let terminal: Terminal?
    private var meter = FrameRateMeter()
    private var reading: FrameRateMeter.Reading?

    /// - Parameter terminal: the terminal where the line is redrawn; without one, each reading is printed on a new
    ///   line.
    init(terminal: Terminal?) {
        self.terminal = terminal
    }

    func noteFrame(_ link: DisplayLink) {
        guard let reading = meter.frame(at: link.timestamp) else { return }
        self.reading = reading
        show(link)
    }

    func show(_ link: DisplayLink) {
        let figure = reading?.description ?? "-- FPS"
        let rest = "load \(load) ms, \(link.totalDroppedFrames) frames dropped"
        guard let terminal else { return print("\(figure), \(rest)") }
        let (red, green, blue) = reading?.rgb ?? (128, 128, 128)
        terminal.redraw("\u{1b}[1;38;2;\(red);\(green);\(blue)m\(figure)\u{1b}[0m  \(rest)  (+ - q) ")
    }
}
