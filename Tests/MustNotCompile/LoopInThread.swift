// error: XX
import class Foundation.Thread
import RunLoopKit

func runOnThread(loop: RunLoop) {
    Thread { loop.stop() }.start()
}
