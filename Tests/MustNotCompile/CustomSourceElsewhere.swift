// error: XX
import RunLoopKit

func signalElsewhere(source: CustomSource, remote: RunLoop.Remote) {
    remote.perform { _ in source.signal() }
}
