// error: passing closure as a 'sending' parameter risks causing data races
import RunLoopKit

func invalidateElsewhere(observer: Observer) {
    Task.detached { observer.invalidate() }
}
