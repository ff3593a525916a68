internal import RunLoopKit

/// The state machine that decides when a datagram socket receives and sends. Makes no system calls.
struct DatagramMachine {
    /// The taker of the datagrams.
    private enum Taker {
        case handler
        /// Tasks take the datagrams, of which one may be waiting.
        case tasks(isAwaited: Bool)
    }

    /// The system, which takes the datagrams to send.
    private enum Sink {
        case accepting
        /// The system accepts no more for now, and reports when it does.
        case blocked
        /// Sending pauses for a full receiver, whose free room the system does not report.
        case pausing
    }

    /// The maximum number of bytes that may wait to be sent.
    private let mostWaiting: Int
    private var taker: Taker

    private(set) var isClosed = false
    private var pauses = 0
    /// The number of bytes waiting to be sent.
    private(set) var waiting = 0
    private var sink = Sink.accepting
    /// True if a datagram has been refused since the last drain.
    private var isFull = false

    init(mostWaiting: Int, isForTasks: Bool) {
        (self.mostWaiting, taker) = (mostWaiting, isForTasks ? .tasks(isAwaited: false) : .handler)
    }

    /// The events for which to watch the descriptor.
    var interest: DescriptorEvents {
        var events: DescriptorEvents = wantsInput ? .readable : []
        if sink == .blocked && !isClosed { events.insert(.writable) }
        return events
    }

    // MARK: Receiving

    /// True if a handler or a task is ready to receive a datagram.
    var wantsInput: Bool {
        if case .tasks(isAwaited: false) = taker { return false }
        return !isClosed && pauses == 0
    }

    /// Notes that a task begins to wait for a datagram, or no longer waits.
    mutating func setAwaited(_ isAwaited: Bool) {
        if case .handler = taker { return assertionFailure("a task waits for the datagrams of a handler") }
        taker = .tasks(isAwaited: isAwaited)
    }

    mutating func pause() { pauses += 1 }

    /// - Returns: `false` if nothing was paused.
    mutating func resume() -> Bool {
        guard pauses > 0 else { return false }
        pauses -= 1
        return true
    }

    // MARK: Sending

    /// True if the system accepts no more for now.
    var isBlocked: Bool { sink != .accepting }

    /// True if nothing waits to be sent and the system accepts datagrams.
    var isIdle: Bool { waiting == 0 && !isBlocked && !isClosed }

    /// Admits a datagram of `count` bytes to the queue if there is room. A single datagram always has room.
    mutating func admits(_ count: Int) -> Bool {
        assert(!isClosed && count >= 0, "a closed socket takes a datagram")
        guard waiting > 0, waiting + count > mostWaiting else {
            waiting += count
            return true
        }
        isFull = true
        return false
    }

    /// Notes that `count` bytes have left the queue.
    mutating func left(_ count: Int) {
        assert(isClosed || count <= waiting, "more datagrams have left than waited")
        waiting -= count
    }

    /// Notes that the system accepts no more datagrams.
    ///
    /// - Parameter reportsEnd: whether the descriptor becomes writable when the system accepts datagrams again.
    mutating func block(reportsEnd: Bool) {
        assert(!isClosed, "a closed socket waits to send")
        sink = reportsEnd ? .blocked : .pausing
    }

    mutating func unblock() { sink = .accepting }

    /// Returns whether to notify a refused sender of room: once, when the queue is at most half full.
    mutating func drains() -> Bool {
        guard isFull, waiting <= mostWaiting / 2, !isClosed else { return false }
        isFull = false
        return true
    }

    mutating func close() { (isClosed, waiting, isFull) = (true, 0, false) }
}
