// error: instance method 'run' is unavailable from asynchronous contexts; a run loop blocks its thread
import RunLoopKit

func runInAsync(loop: RunLoop) async {
    loop.run()
}
