internal import Glibc
internal import RunLoopCore
@_spi(Ports) internal import RunLoopSimulation

/// The target of descriptors of simulated processes, such as a socket or a file. Several descriptors, even of several
/// processes, may refer to one target.
class OpenDescription {
    private var holders = 0
    /// The watches, each with the process of its descriptor.
    private var watches: [(watch: DescriptorWatch, process: AnyObject)] = []

    /// The events that the target is ready for; `nil` if no loop can wait for it.
    var readiness: DescriptorEvents? { nil }
    func read(into room: UnsafeMutableRawBufferPointer) -> Int { failure(EINVAL) }
    func write(_ bytes: UnsafeRawBufferPointer) -> Int { failure(EINVAL) }
    func send(_ bytes: UnsafeRawBufferPointer) -> Int { write(bytes) }
    /// Makes the target non-blocking, as simulated ones are.
    func prepare() {}
    /// Closes the target. Called when no descriptor refers to it any more.
    func close() {}

    // MARK: Descriptors

    final func hold() { holders += 1 }

    /// Releases a descriptor that a process has closed.
    final func letGo(_ descriptor: Int32, of process: AnyObject) {
        watches.removeAll { $0.process === process && $0.watch.descriptor == descriptor }
        holders -= 1
        if holders == 0 { close() }
    }

    // MARK: Watches

    final func begin(_ watch: DescriptorWatch, of process: AnyObject) {
        watches.append((watch, process))
        watch.note(readiness ?? [])
    }

    final func end(_ watch: DescriptorWatch) { watches.removeAll { $0.watch === watch } }

    /// Notes the present readiness, which may have changed.
    final func tell() {
        guard let readiness else { return }
        for (watch, _) in watches { watch.note(readiness) }
    }

    /// Drops the target without notice, because its machine has stopped.
    func vanish() { watches.removeAll() }
}

/// Returns -1, as system calls do, with a reason in `errno`.
func failure<Number: SignedInteger>(_ reason: Int32) -> Number {
    errno = reason
    return -1
}

/// Returns `nil`, with a reason in `errno`.
func failure<Result>(_ reason: Int32) -> Result? {
    errno = reason
    return nil
}
