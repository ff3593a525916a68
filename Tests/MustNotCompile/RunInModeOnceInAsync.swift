// error: instance method 'run(mode:before:)' is unavailable from asynchronous contexts
import RunLoopKit

func runOnceInTask() {
    let loop = RunLoop.current
    Task { loop.run(mode: .default, before: .distantFuture) }
}
