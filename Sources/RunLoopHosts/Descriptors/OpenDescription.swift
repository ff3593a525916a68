internal import Glibc
internal import RunLoopCore
internal import RunLoopSimulation

/// The target of descriptors of simulated processes, such as a socket or a file. Several descriptors may refer to one,
/// even those of several processes.
class OpenDescription {
    private var holders = 0
    /// The watches, each with the system through which it came.
    private var watches: [(watch: DescriptorWatch, system: AnyObject)] = []

    /// Whether a loop can wait for it.
    var isPollable: Bool { false }
    var readiness: DescriptorEvents { [] }

    func read(into room: UnsafeMutableRawBufferPointer) -> Int { Int(fail(EINVAL)) }
    func write(_ bytes: UnsafeRawBufferPointer) -> Int { Int(fail(EINVAL)) }
    /// Called when no descriptor refers to it any more.
    func close() {}

    final func fail(_ reason: Int32) -> Int32 {
        errno = reason
        return -1
    }

    // MARK: Descriptors

    final func hold() {
        holders += 1
    }

    /// Releases a descriptor that a process has closed.
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

    /// Notes the present readiness, which may have changed.
    final func tell() {
        let readiness = readiness
        for (watch, _) in watches { watch.note(readiness) }
    }

    /// Forgets the watches, when its machine has stopped.
    final func forgetWatches() {
        watches.removeAll()
    }
}
