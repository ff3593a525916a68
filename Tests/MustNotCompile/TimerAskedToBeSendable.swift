// error: conformance of 'Timer' to 'Sendable' is unavailable: a timer belongs to its loop's thread
import RunLoopKit

func share(_ value: some Sendable) {}

func shareTimer(timer: Timer) {
    share(timer)
}
