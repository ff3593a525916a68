// error: XX
import RunLoopKit

func runInAsync(loop: RunLoop) async {
    loop.run()
}
