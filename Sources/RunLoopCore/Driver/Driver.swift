/// What a loop needs from the world: the time, a way to sleep, and word of descriptors.
///
/// A driver never calls user code and knows neither modes nor timers. It is used on its loop's thread only, but for the
/// ``Waker`` that it hands out.
package protocol Driver: AnyObject {
    /// The time, read afresh.
    var now: RunLoop.Instant { get }

    /// Wakes ``wait(until:into:)`` from any thread.
    var waker: any Waker { get }

    /// Whether the time is virtual. Then tolerance moves no fire, results are exact, and no wall clock goes with it.
    var isVirtual: Bool { get }

    /// Sleeps until `deadline`, until a watched descriptor is ready, or until woken; a deadline that has come makes it
    /// look without sleeping. Ready descriptors are appended to `ready`.
    func wait(until deadline: RunLoop.Instant, into ready: ReadyQueue) -> WaitOutcome

    /// Begins to report `token` whenever `descriptor` is ready for one of `events`.
    func watch(_ descriptor: Int32, for events: DescriptorEvents, token: SourceToken) throws(DescriptorError)

    /// Ends what ``watch(_:for:token:)`` began. Nothing collected before is taken back.
    func unwatch(_ token: SourceToken)

    /// A driver for another thread's loop in the same world: the real one, or the same virtual timeline.
    ///
    /// - Parameter isService: the thread only serves others; that nothing is left for it to wait for says nothing.
    func makePeer(named name: String, isService: Bool) -> any PeerDriver

    /// What the threads of a simulation share; `nil` in the real world.
    var world: SimulatedWorld? { get }
}

extension Driver {
    package func makePeer(named name: String) -> any PeerDriver {
        makePeer(named: name, isService: false)
    }
}

/// A driver that is made on one thread and handed to the thread that is to use it.
package protocol PeerDriver: Sendable {
    /// Wakes the driver, also before ``begin()``.
    var waker: any Waker { get }

    /// Called first, on the new thread; returns the driver once the thread may run.
    func begin() -> any Driver

    /// Called next, with the loop that waits with the driver.
    func adopt(_ loop: RunLoop)

    /// Called last, on that thread, after everything of the loop has been released.
    func end()

    /// Waits, on another thread, until ``end()`` has been called.
    func join()
}

/// How a wait ended.
package enum WaitOutcome {
    /// The deadline has come, something is ready, or somebody woke the loop.
    case woke
    /// Virtual time only: nothing could ever end this wait.
    case starved
}

/// What other threads need of a driver.
package protocol Waker: Sendable {
    /// Ends the driver's wait.
    func wake()

    /// The time on the driver's clock.
    var now: RunLoop.Instant { get }
}

/// Names a source to the driver. The version tells a slot's present tenant from those before it.
package struct SourceToken: Hashable, Sendable {
    package let slot: UInt32
    package let version: UInt32

    package init(slot: UInt32, version: UInt32) {
        self.slot = slot
        self.version = version
    }
}

/// What a descriptor can be watched for, and what it was found to be.
public struct DescriptorEvents: OptionSet, Sendable, Hashable {
    public let rawValue: UInt8

    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Reading will not block: there are bytes, a connection to accept, the end of the stream, or an error.
    public static let readable = DescriptorEvents(rawValue: 1)

    /// Writing will not block, or will fail at once.
    public static let writable = DescriptorEvents(rawValue: 2)
}

/// Why a descriptor cannot be watched.
public enum DescriptorError: Error, Equatable, CustomStringConvertible {
    /// The number is not that of an open descriptor: it was closed, or never opened.
    case notOpen(Int32)
    /// The descriptor is open, but its kind is always ready and cannot be waited for: a regular file or a directory.
    case notPollable(Int32)
    /// Another error of the system, with its `errno`.
    case system(Int32, errno: Int32)

    public var description: String {
        switch self {
        case .notOpen(let descriptor):
            "descriptor \(descriptor) is not open; add a source before its descriptor is closed"
        case .notPollable(let descriptor):
            "descriptor \(descriptor) is a regular file or directory, which is always ready; read it directly"
        case .system(let descriptor, let errno):
            "descriptor \(descriptor) cannot be watched: errno \(errno)"
        }
    }
}

/// Descriptors found ready and not yet served, oldest first. It belongs to the loop and only ever pops, so that a
/// nested run serves what the outer one collected.
package final class ReadyQueue {
    // Only the loop's thread gets here, and no access is open while anything else is called.
    @exclusivity(unchecked) private var entries: ContiguousArray<(token: SourceToken, events: DescriptorEvents)> = []
    @exclusivity(unchecked) private var head = 0
    /// Entries beyond it are left from before.
    @exclusivity(unchecked) private var end = 0

    package init() {}

    package var isEmpty: Bool { head == end }
    package var count: Int { end - head }

    package func append(_ token: SourceToken, _ events: DescriptorEvents) {
        if end < entries.count { entries[end] = (token, events) } else { entries.append((token, events)) }
        end += 1
    }

    /// Puts what waits into an order, without changing that of equals.
    package func sort(by order: (SourceToken) -> Int) {
        guard count > 1 else { return }
        let waiting = entries[head..<end].enumerated().map { (order: order($1.token), place: $0, entry: $1) }
        entries.replaceSubrange(
            head..<end, with: waiting.sorted { ($0.order, $0.place) < ($1.order, $1.place) }.map(\.entry))
    }

    package func popFirst() -> (token: SourceToken, events: DescriptorEvents)? {
        guard head < end else { return nil }
        let entry = entries[head]
        head += 1
        if head == end { (head, end) = (0, 0) }
        return entry
    }
}
