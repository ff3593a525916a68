// error: conformance of 'Daemon' to 'Sendable' is unavailable: a daemon belongs to its loop's thread; give other threads its remote
import RunLoopUnix

func take(_: some Sendable) {}

func send(_ value: Daemon) {
    take(value)
}
