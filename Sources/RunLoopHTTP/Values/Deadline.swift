#if Adapters
internal import RunLoopKit

/// A time that a peer has. It moves with each of the peer's steps, which costs no allocation.
final class Deadline: Timeout {
    private let loop: RunLoop
    private let modes: RunLoop.Modes
    /// Called when the time is over.
    var reached: (() -> Void)?
    private enum State {
        case paused, awaited
        /// The time was over when the loop came to it.
        case late
    }
    private var state = State.paused

    init(on loop: RunLoop, inModes modes: RunLoop.Modes) {
        (self.loop, self.modes) = (loop, modes)
        super.init(origin: RunLoop.Origin())
    }

    override func timeoutExpired() {
        switch state {
        case .paused: break
        // While the process was stopped, or its loop busy, the peer had no answers either. What has come meanwhile is read
        // first, and the peer has as much time again as the loop was late.
        case .awaited:
            state = .late
            rearm(at: loop.now + (loop.now - (fireDate ?? loop.now)))
        case .late:
            state = .paused
            reached?()
        }
    }

    /// Gives the peer a time from now on.
    func set(after time: Duration) { set(loop.now + time) }

    func set(_ date: RunLoop.Instant) {
        state = .awaited
        if fireDate != date, !rearm(at: date) { loop.add(self, at: date, forMode: modes) }
    }

    /// Forgets the time until the next one is set. Until then the timeout stays where it is: the next time is usually later,
    /// so that the loop's earliest date, and the kernel's timer, remain as they are.
    func pause() { state = .paused }
}
#endif
