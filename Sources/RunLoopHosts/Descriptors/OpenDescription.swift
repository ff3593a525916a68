internal import Glibc
internal import RunLoopCore
internal import RunLoopSimulation

/// What descriptors of simulated processes lead to, such as a socket or a file. Several may lead to the same one, also those
/// of several processes.
class OpenDescription {
    private var holders = 0
    /// With the system through which each of them came.
    private var watches: [(watch: DescriptorWatch, system: AnyObject)] = []

    /// Whether a loop can wait for it.
    var isPollable: Bool { false }
    var readiness: DescriptorEvents { [] }

    func read(into room: UnsafeMutableRawBufferPointer) -> Int { Int(fail(EINVAL)) }
    func write(_ bytes: UnsafeRawBufferPointer) -> Int { Int(fail(EINVAL)) }
    /// No descriptor leads to it any more.
    func close() {}

    final func fail(_ reason: Int32) -> Int32 {
        errno = reason
        return -1
    }

    // MARK: Descriptors

    final func hold() {
        holders += 1
    }

    /// A descriptor of a process is closed.
    final func letGo(_ descriptor: Int32, of system: AnyObject) {
        watches.removeAll { $0.system === system && $0.watch.descriptor == descriptor }
        holders -= 1
        if holders == 0 { close() }
    }

    // MARK: Watches

    final func begin(_ watch: DescriptorWatch, of system: AnyObject) {
        watches.append((watch, system))
        watch.note(readiness)
    }

    final func end(_ watch: DescriptorWatch) {
        watches.removeAll { $0.watch === watch }
    }

    /// What it is ready for may have changed.
    final func tell() {
        let readiness = readiness
        for (watch, _) in watches { watch.note(readiness) }
    }

    /// Its machine has lost it.
    final func forgetWatches() {
        watches.removeAll()
    }
}
