// error: conformance of 'RunLoop.Tasks' to 'Sendable' is unavailable: a scope belongs to its loop's thread
import RunLoopKit

func share(_ value: some Sendable) {}

func shareTasks(tasks: RunLoop.Tasks) {
    share(tasks)
}
