// error: conformance of 'FileWatcher' to 'Sendable' is unavailable: a file watcher belongs to its loop's thread
import RunLoopUnix

func take(_: some Sendable) {}

func send(_ value: FileWatcher) {
    take(value)
}
