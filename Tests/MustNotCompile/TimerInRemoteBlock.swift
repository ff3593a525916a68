// error: XX
import RunLoopKit

func stopRemotely(remote: RunLoop.Remote, timer: Timer) {
    remote.perform { _ in timer.fireDate = .distantFuture }
}
