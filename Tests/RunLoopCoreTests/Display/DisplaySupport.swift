import RunLoopKit
import RunLoopSimulation
import TestSupport

@testable import RunLoopCore

/// Returns the date of a frame of the standard clock, computed in another way than the clock does.
func frame(_ number: Int64, at framesPerSecond: Int64 = 60) -> RunLoop.Instant {
    let (seconds, rest) = number.quotientAndRemainder(dividingBy: framesPerSecond)
    return ns(seconds * 1_000_000_000 + rest * 1_000_000_000 / framesPerSecond)
}

extension DisplayLink {
    /// The frame of the present call, or of the latest one.
    var frame: Int64 { schedule.frames.frame(at: timestamp) }
}

/// A scheduled display link and a record of its calls.
final class RecordedLink {
    private(set) var frames: [Int64] = []
    private(set) var drops: [Int] = []
    private(set) var targets: [Int64] = []
    private(set) var link: DisplayLink!

    convenience init(
        _ loop: RunLoop, in modes: RunLoop.Modes = .default, clock: FrameClock = FrameClock(),
        _ body: @escaping (DisplayLink) -> Void = { _ in }
    ) {
        self.init(loop, in: modes, clock: clock, set: { _ in }, body)
    }

    init(
        _ loop: RunLoop, in modes: RunLoop.Modes = .default, clock: FrameClock = FrameClock(),
        set: (DisplayLink) -> Void, _ body: @escaping (DisplayLink) -> Void = { _ in }
    ) {
        link = DisplayLink(clock: clock) { [unowned self] link in
            frames.append(link.frame)
            drops.append(link.droppedFrames)
            targets.append(clock.frame(at: link.targetTimestamp))
            body(link)
        }
        set(link)
        link.add(to: loop, forMode: modes)
    }

    deinit {
        link.invalidate()
    }
}

/// A target for links.
final class Stepper {
    private(set) var steps = 0
    var onStep: (DisplayLink) -> Void = { _ in }
    private let onEnd: () -> Void

    init(onEnd: @escaping () -> Void = {}) {
        self.onEnd = onEnd
    }

    func step(_ link: DisplayLink) {
        steps += 1
        onStep(link)
    }

    deinit {
        onEnd()
    }
}
