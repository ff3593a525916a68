internal import Glibc
internal import RunLoopCore
@_spi(Ports) internal import RunLoopSimulation

/// The target of descriptors of simulated processes, such as a socket or a file. Several descriptors, even of several
/// processes, may refer to one target.
class OpenDescription {
    private var holders = 0
    /// The watches, each with the process of its descriptor.
    private var watches: [(watch: DescriptorWatch, process: AnyObject)] = []
    /// The closures to call when the readiness may have changed, each with the one who asked for it.
    private var observers: [(owner: ObjectIdentifier, wasTold: (_ events: Int16) -> Void)] = []
    /// `true` if calls of a program of the system wait until they can be done. Calls of loops never wait.
    final var blocks = true
    /// `true` once no descriptor refers to the target any more.
    final private(set) var isClosed = false

    /// The events that the target is ready for; `nil` if no loop can wait for it.
    var readiness: DescriptorEvents? { nil }
    func read(into room: UnsafeMutableRawBufferPointer) -> Int { failure(EINVAL) }
    /// Reads bytes that a later call reads again.
    func peek(into room: UnsafeMutableRawBufferPointer) -> Int { failure(EOPNOTSUPP) }
    func write(_ bytes: UnsafeRawBufferPointer) -> Int { failure(EINVAL) }
    func send(_ bytes: UnsafeRawBufferPointer) -> Int { write(bytes) }
    /// The events of `poll` that the target is ready for.
    var pollEvents: Int16 {
        // A file is always ready.
        let readiness = readiness ?? [.readable, .writable]
        return (readiness.contains(.readable) ? Int16(POLLIN) : 0)
            | (readiness.contains(.writable) ? Int16(POLLOUT) : 0)
    }
    /// The access mode of the target, as a flag of `open`.
    var access: Int32 { O_RDWR }
    /// The number of bytes that can be read; `nil` if the target cannot tell.
    var inputCount: Int? { nil }
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
        if holders == 0 {
            isClosed = true
            close()
        }
    }

    // MARK: Watches

    final func begin(_ watch: DescriptorWatch, of process: AnyObject) {
        watches.append((watch, process))
        watch.note(readiness ?? [])
    }

    final func end(_ watch: DescriptorWatch) { watches.removeAll { $0.watch === watch } }

    /// Notes the present readiness, which may have changed.
    ///
    /// - Parameter events: the events of `poll` that may have come; all by default. As in Linux, a set of descriptors is
    ///   told of those only, even if they were there before.
    final func tell(_ events: Int16 = ~0) {
        guard let readiness else { return }
        for (watch, _) in watches { watch.note(readiness) }
        for observer in observers { observer.wasTold(events) }
    }

    // MARK: Observers

    /// Has a closure called whenever the readiness may have changed, with the events that may have come.
    ///
    /// - Parameter isFirst: `true` if it is called before those that are there.
    final func addObserver(_ owner: AnyObject, isFirst: Bool = false, _ wasTold: @escaping (Int16) -> Void) {
        observers.insert((ObjectIdentifier(owner), wasTold), at: isFirst ? 0 : observers.count)
    }

    final func removeObserver(_ owner: AnyObject) {
        observers.removeAll { $0.owner == ObjectIdentifier(owner) }
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
