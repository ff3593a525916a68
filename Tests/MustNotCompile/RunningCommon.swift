// error: type 'RunLoop.Mode' has no member 'common'
import RunLoopKit

func runCommon(loop: RunLoop) {
    loop.run(in: .common)
}
