// error: capture of 'source' with non-Sendable type 'CustomSource' in a '@Sendable' closure
import RunLoopKit

func signalElsewhere(source: CustomSource, remote: RunLoop.Remote) {
    remote.perform { _ in source.signal() }
}
