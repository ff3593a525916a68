// error: capture of 'link' with non-Sendable type 'DisplayLink' in a '@Sendable' closure
import RunLoopKit

func invalidateElsewhere() -> LoopThread {
    let link = DisplayLink.scheduledDisplayLink { _ in }
    return LoopThread { _ in link.invalidate() }
}
