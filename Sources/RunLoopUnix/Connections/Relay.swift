internal import Glibc
@_spi(Ports) internal import RunLoopKit

/// A relay that carries bytes between two connections, in both directions, until both sides have ended.
///
/// ```swift
/// Relay(between: client, and: server) { relay, reason in
///     print("\(relay.bytesFromFirst) bytes there, \(relay.bytesFromSecond) back: \(reason)")
/// }
/// ```
///
/// The two directions are independent: a side that reads slowly, or not at all, slows only the direction towards it.
/// Each direction holds a bounded number of bytes, and a buffer of 64 KiB only while bytes wait. Between two sockets,
/// pieces of 16 KiB and more stay in the kernel (`splice`) and are not copied to the process; for smaller ones, copying
/// takes fewer system calls and less time.
///
/// The end of one side is passed on to the other, which may continue. If one side accepts no more because it has
/// closed, its earlier output still goes to the other side, which then has 30 s to end. A failure of one side, the idle
/// timeout and the end of the loop close both sides, with a reset over TCP, because a broken transfer must not look
/// complete. A relay keeps itself alive until it has ended, belongs to the loop's thread and is not `Sendable`.
public final class Relay {
    /// The number of bytes carried from the first connection to the second.
    public var bytesFromFirst: Int { directions[0].count }
    /// The number of bytes carried from the second connection to the first.
    public var bytesFromSecond: Int { directions[1].count }
    /// A Boolean value that indicates whether the relay is still running.
    public private(set) var isOpen = true

    fileprivate let streams: [any ByteStream]
    private let directions: [RelayDirection]
    private var timers: ConnectionTimers?
    /// The reason why one side accepts no more.
    private var failure: Connection.CloseReason?
    private var ended: ((Relay, Connection.CloseReason) -> Void)?

    /// Creates a relay that takes over two connections of one loop, and starts it.
    ///
    /// Unused input and waiting output go first. The relay owns the connections' streams; the connections are closed
    /// without a call of their handlers. A connection that has not been started starts now. Call it on the loop's
    /// thread, but not in a receive handler of either connection; post a block there instead.
    ///
    /// - Parameters:
    ///   - first: one side.
    ///   - second: the other.
    ///   - idleTimeout: the time without bytes in either direction after which the relay ends; `nil`, the default,
    ///     means no limit.
    ///   - ended: called once, with `.ended` when both sides have ended, or with the failure.
    @discardableResult
    public init(
        between first: Connection, and second: Connection, idleTimeout: Duration? = nil,
        ended: ((Relay, Connection.CloseReason) -> Void)? = nil
    ) {
        require(first !== second && first.loop === second.loop, "a relay is between two connections of one loop")
        let sides = [first.handOver(), second.handOver()]
        streams = sides.map(\.stream)
        let usesKernel = streams.allSatisfy { ($0 as? DescriptorStream)?.maySplice == true }
        let pool = BufferPool.shared(of: first.loop)
        directions = [
            RelayDirection(from: sides[0], to: sides[1], usesKernel: usesKernel, pool),
            RelayDirection(from: sides[1], to: sides[0], usesKernel: usesKernel, pool),
        ]
        self.ended = ended
        var limits = Connection.Limits()
        limits.idleTimeout = idleTimeout
        timers = ConnectionTimers(first.origin, on: first.loop, first.modes) { [unowned self] in end($0) }
        timers?.set(limits, while: { true })
        for (index, connection) in [first, second].enumerated() {
            streams[index].owner = RelaySide(self, index)
            guard !sides[index].isStarted else { continue }
            do {
                try streams[index].open(
                    on: first.loop, inModes: connection.modes, origin: connection.origin, interest: [])
            } catch {
                first.loop.perform(inModes: first.modes) { [self] in
                    end(.failed(SystemError("watch the connection", errno: EBADF)))
                }
            }
        }
        settle()
    }

    // MARK: Events

    fileprivate func isReady(_ index: Int, for events: DescriptorEvents) {
        assert(isOpen, "a stream reports to a relay that has closed it")
        timers?.noteActivity()
        if events.contains(.writable) { directions[1 - index].sinkIsReady() }
        if events.contains(.readable) { directions[index].sourceIsReady() }
        settle()
    }

    fileprivate func end(_ reason: Connection.CloseReason) {
        guard isOpen else { return }
        isOpen = false
        timers?.invalidate()
        timers = nil
        // A broken transfer must not look complete.
        let isComplete = directions.allSatisfy(\.hasEnded)
        for stream in streams { stream.close(isComplete ? .complete : .reset) }
        let handler = ended
        ended = nil
        handler?(self, failure ?? reason)
    }

    /// Moves the bytes that can be moved now.
    private func settle() {
        for direction in directions where isOpen {
            if let failed = direction.move() { return end(.failed(failed)) }
        }
        guard isOpen else { return }
        if failure == nil, let sinkFailure = directions.lazy.compactMap(\.sinkFailure).first {
            failure = .failed(sinkFailure)
            timers?.limit(to: .seconds(30))
        }
        if directions.allSatisfy(\.hasEnded) { return end(.ended) }
        for index in streams.indices {
            var events: DescriptorEvents = directions[index].wantsInput ? .readable : []
            if directions[1 - index].isBlocked { events.insert(.writable) }
            streams[index].interest = events
        }
    }
}

@available(*, unavailable, message: "a relay belongs to its loop's thread")
extension Relay: Sendable {}

/// The owner of a stream, which passes its events to the relay with the index of its side.
private final class RelaySide: StreamOwner {
    private let relay: Relay
    private let index: Int

    init(_ relay: Relay, _ index: Int) {
        self.relay = relay
        self.index = index
    }

    func streamOpened() { relay.isReady(index, for: [.readable, .writable]) }
    func streamIsReady(for events: DescriptorEvents) { relay.isReady(index, for: events) }
    func streamFailed() { relay.end(.failed(relay.streams[index].failure ?? SystemError("relay", errno: EIO))) }
    func streamLostItsLoop() { relay.end(.loopEnded) }
}
