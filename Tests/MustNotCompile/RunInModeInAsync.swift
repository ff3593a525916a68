// error: instance method 'run' is unavailable from asynchronous contexts; a run loop blocks its thread
import RunLoopKit

// Fresh from `RunLoop.current` a loop may be sent to a task; that it does not block the task's thread is for `noasync`.
func runInTask() {
    let loop = RunLoop.current
    Task { loop.run(in: .default) }
}
