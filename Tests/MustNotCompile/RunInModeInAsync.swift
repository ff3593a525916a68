// error: instance method 'run(in:until:returnAfterSourceHandled:)' is unavailable from asynchronous contexts
import RunLoopKit

// Fresh from `RunLoop.current` a loop may be sent to a task; that it does not block the task's thread is for `noasync`.
func runInTask() {
    let loop = RunLoop.current
    Task { loop.run(in: .default) }
}
