// error: capture of 'call' with non-Sendable type 'DelayedCall' in a '@Sendable' closure
import RunLoopKit

func cancelElsewhere(call: DelayedCall) -> LoopThread {
    LoopThread { _ in call.cancel() }
}
