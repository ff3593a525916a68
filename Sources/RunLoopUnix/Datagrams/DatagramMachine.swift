internal import RunLoopKit

/// The state machine that decides when a datagram socket receives and sends. Makes no system calls.
struct DatagramMachine {
    /// The maximum number of bytes that may wait to be sent.
    private let mostWaiting: Int
    private let isForTasks: Bool

    private(set) var isClosed = false
    private var pauses = 0
    /// True while a task waits for a datagram.
    var isAwaited = false
    /// The number of bytes waiting to be sent.
    private(set) var waiting = 0
    /// True if the system accepts no more for now.
    private(set) var isBlocked = false
    /// True while sending pauses for a full receiver, whose free room the system does not report.
    private(set) var isPausing = false
    /// True if a datagram has been refused since the last drain.
    private var isFull = false

    init(mostWaiting: Int, isForTasks: Bool) {
        (self.mostWaiting, self.isForTasks) = (mostWaiting, isForTasks)
    }

    /// The events for which to watch the descriptor.
    var interest: DescriptorEvents {
        var events: DescriptorEvents = wantsInput ? .readable : []
        if isBlocked && !isPausing && !isClosed { events.insert(.writable) }
        return events
    }

    // MARK: Receiving

    /// True if a handler or a task is ready to receive a datagram.
    var wantsInput: Bool { !isClosed && pauses == 0 && (!isForTasks || isAwaited) }

    mutating func pause() { pauses += 1 }

    /// - Returns: `false` if nothing was paused.
    mutating func resume() -> Bool {
        guard pauses > 0 else { return false }
        pauses -= 1
        return true
    }

    // MARK: Sending

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
        (isBlocked, isPausing) = (true, !reportsEnd)
    }

    mutating func unblock() { (isBlocked, isPausing) = (false, false) }

    /// Returns whether to notify a refused sender of room: once, when the queue is at most half full.
    mutating func drains() -> Bool {
        guard isFull, waiting <= mostWaiting / 2, !isClosed else { return false }
        isFull = false
        return true
    }

    mutating func close() { (isClosed, waiting, isFull) = (true, 0, false) }
}
