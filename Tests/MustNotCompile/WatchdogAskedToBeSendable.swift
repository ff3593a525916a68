// error: conformance of 'Watchdog' to 'Sendable' is unavailable: a watchdog belongs to its loop's thread
import RunLoopUnix

func take(_: some Sendable) {}

func send(_ value: Watchdog) {
    take(value)
}
