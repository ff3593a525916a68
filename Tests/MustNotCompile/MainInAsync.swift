// error: XX
import RunLoopKit

func mainInAsync() async {
    RunLoop.main.stop()
}
