// error: XX
import RunLoopKit

func cancelElsewhere(call: DelayedCall) -> LoopThread {
    LoopThread { _ in call.cancel() }
}
