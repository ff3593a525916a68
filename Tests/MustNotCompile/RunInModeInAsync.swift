// error: instance method 'run' is unavailable from asynchronous contexts; a run loop blocks its thread
import RunLoopKit

// A loop fresh from `RunLoop.current` may be sent to a task; `noasync` keeps it from blocking the task's thread.
func runInTask() {
    let loop = RunLoop.current
    Task { loop.run(in: .default) }
}
