// error: XX
import RunLoopKit

func invalidateElsewhere(observer: Observer) {
    Task.detached { observer.invalidate() }
}
