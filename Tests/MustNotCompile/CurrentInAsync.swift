// error: class property 'current' is unavailable from asynchronous contexts; a task may change its thread
import RunLoopKit

func currentInAsync() async {
    RunLoop.current.stop()
}
