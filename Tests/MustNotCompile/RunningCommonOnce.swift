// error: type 'RunLoop.Mode' has no member 'common'
import RunLoopKit

func runCommonOnce(loop: RunLoop) -> Bool {
    loop.run(mode: .common, before: .distantFuture)
}
