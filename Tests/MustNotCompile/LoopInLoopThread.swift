// error: XX
import RunLoopKit

func runOnLoopThread(loop: RunLoop) {
    LoopThread { _ in loop.stop() }.join()
}
