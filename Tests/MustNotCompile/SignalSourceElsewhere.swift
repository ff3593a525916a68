// error: capture of 'source' with non-Sendable type 'SignalSource' in a '@Sendable' closure
import RunLoopKit
import RunLoopUnix

func useElsewhere(source: SignalSource) -> LoopThread {
    LoopThread { _ in source.invalidate() }
}
