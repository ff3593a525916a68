// error: capture of 'timer' with non-Sendable type 'Timer' in a '@Sendable' closure
import RunLoopKit

func stopRemotely(remote: RunLoop.Remote, timer: Timer) {
    remote.perform { _ in timer.fireDate = .distantFuture }
}
