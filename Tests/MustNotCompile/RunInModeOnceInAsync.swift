// error: instance method 'run' is unavailable from asynchronous contexts; a run loop blocks its thread
import RunLoopKit

func runOnceInTask() {
    let loop = RunLoop.current
    Task { loop.run(mode: .default, before: .distantFuture) }
}
