internal import RunLoopCore

/// The rests of tasks and threads that take many steps while no time passes.
///
/// Such a one may wait, without a pause, for something that another one or the clock will bring. On a real machine its
/// steps take time. The rests double, so it waits at most twice as long as it has to.
final class Endurance: Sendable {
    /// When many steps had last been taken, and the rest after them.
    private let latest = Locked((date: RunLoop.Instant.distantPast, rest: Duration.zero))

    /// The rest of a task or thread that has taken many steps; `nil` if time has passed since as many steps before.
    func restAfterSteps(at now: RunLoop.Instant) -> Duration? {
        latest.withLock { latest in
            let rest: Duration =
                now != latest.date ? .zero : latest.rest == .zero ? .milliseconds(1) : latest.rest * 2
            latest = (now + rest, rest)
            return rest == .zero ? nil : rest
        }
    }
}
