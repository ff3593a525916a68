// error: capture of 'timer' with non-Sendable type 'Timer' in a '@Sendable' closure
import RunLoopKit

func invalidateElsewhere() -> LoopThread {
    let timer = Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in }
    return LoopThread { _ in timer.invalidate() }
}
