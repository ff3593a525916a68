// error: capture of 'loop' with non-Sendable type 'RunLoop' in a '@Sendable' closure
import RunLoopKit

func runOnLoopThread(loop: RunLoop) {
    LoopThread { _ in loop.stop() }.join()
}
