// error: class property 'main' is unavailable from asynchronous contexts; a task may run on any thread
import RunLoopKit

func mainInAsync() async {
    RunLoop.main.stop()
}
