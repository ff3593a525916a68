// error: XX
import RunLoopKit

func currentInAsync() async {
    RunLoop.current.stop()
}
