// error: conformance of 'RunLoop' to 'Sendable' is unavailable: a run loop belongs to one thread
import RunLoopKit

func share(_ value: some Sendable) {}

func shareLoop(loop: RunLoop) {
    share(loop)
}
