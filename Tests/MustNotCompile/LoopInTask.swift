// error: XX
import RunLoopKit

func runInTask(loop: RunLoop) {
    Task { loop.stop() }
}
