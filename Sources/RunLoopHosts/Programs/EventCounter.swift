internal import Glibc
internal import RunLoopCore

/// A counter of events, as `eventfd` makes it.
final class EventCounter: OpenDescription {
    private var count: UInt64
    /// `true` if each read takes one event instead of all.
    private let isSemaphore: Bool
    private static let most = UInt64.max - 1

    init(_ count: UInt64, isSemaphore: Bool) {
        (self.count, self.isSemaphore) = (count, isSemaphore)
    }

    override var readiness: DescriptorEvents? {
        var events: DescriptorEvents = []
        if count > 0 { events.insert(.readable) }
        if count < Self.most { events.insert(.writable) }
        return events
    }

    override func read(into room: UnsafeMutableRawBufferPointer) -> Int {
        guard room.count >= 8 else { return failure(EINVAL) }
        guard count > 0 else { return failure(EAGAIN) }
        let taken = isSemaphore ? 1 : count
        count -= taken
        room.storeBytes(of: taken, as: UInt64.self)
        tell(Int16(POLLOUT))
        return 8
    }

    override func write(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard bytes.count >= 8 else { return failure(EINVAL) }
        let more = bytes.loadUnaligned(as: UInt64.self)
        guard more != .max else { return failure(EINVAL) }
        guard more <= Self.most - count else { return failure(EAGAIN) }
        count += more
        tell(Int16(POLLIN))
        return 8
    }
}
