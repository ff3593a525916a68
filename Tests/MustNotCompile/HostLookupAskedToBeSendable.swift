// error: conformance of 'HostLookup' to 'Sendable' is unavailable: a look-up belongs to its loop's thread
import RunLoopUnix

func passOn<Value: Sendable>(_ value: Value) {}

func ask(_ lookup: HostLookup) {
    passOn(lookup)
}
