// error: passing closure as a 'sending' parameter risks causing data races
import RunLoopKit

func runInTask(loop: RunLoop) {
    Task { loop.stop() }
}
