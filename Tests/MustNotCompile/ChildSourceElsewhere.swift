// error: capture of 'source' with non-Sendable type 'ChildSource' in a '@Sendable' closure
import RunLoopKit
import RunLoopUnix

func useElsewhere(source: ChildSource) -> LoopThread {
    LoopThread { _ in source.invalidate() }
}
