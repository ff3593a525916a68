// error: capture of 'child' with non-Sendable type 'ChildProcess' in a '@Sendable' closure
import RunLoopKit
import RunLoopUnix

func useElsewhere(child: ChildProcess) -> LoopThread {
    LoopThread { _ in _ = child.processIdentifier }
}
