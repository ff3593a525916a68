// error: instance method 'run' is unavailable from asynchronous contexts; a run loop blocks its thread
import FoundationEssentials
import RunLoopFoundation
import RunLoopKit

func runInAsync(loop: RunLoop) async {
    loop.run(mode: .default, before: Date(timeIntervalSinceNow: 1))
}
