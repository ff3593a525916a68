// error: conformance of 'DatagramSocket' to 'Sendable' is unavailable: a datagram socket belongs to its loop's thread
import RunLoopUnix

func take(_: some Sendable) {}

func send(_ value: DatagramSocket) {
    take(value)
}
