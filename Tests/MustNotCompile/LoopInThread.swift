// error: capture of 'loop' with non-Sendable type 'RunLoop' in a '@Sendable' closure
import RunLoopKit

import class Foundation.Thread

func runOnThread(loop: RunLoop) {
    Thread { loop.stop() }.start()
}
