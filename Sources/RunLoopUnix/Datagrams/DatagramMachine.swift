internal import RunLoopKit

/// Decides when a datagram socket receives and sends. It makes no system calls.
struct DatagramMachine {
    /// The most bytes that may wait to be sent.
    private let mostWaiting: Int
    private let isForTasks: Bool

    private(set) var isClosed = false
    private var pauses = 0
    /// Whether a task waits for a datagram.
    var isAwaited = false
    /// The bytes that wait to be sent.
    private(set) var waiting = 0
    /// Whether the system has accepted no more.
    private(set) var isBlocked = false
    /// Whether a receiver without room makes the sender wait, of which the system does not report the end.
    private(set) var isPausing = false
    /// Whether a datagram was refused since the last drain.
    private var isFull = false

    init(mostWaiting: Int, isForTasks: Bool) {
        (self.mostWaiting, self.isForTasks) = (mostWaiting, isForTasks)
    }

    /// The events to watch for.
    var interest: DescriptorEvents {
        var events: DescriptorEvents = wantsInput ? .readable : []
        if isBlocked && !isPausing && !isClosed { events.insert(.writable) }
        return events
    }

    // MARK: Receiving

    /// Whether a datagram has a receiver.
    var wantsInput: Bool { !isClosed && pauses == 0 && (!isForTasks || isAwaited) }

    mutating func pause() { pauses += 1 }

    /// - Returns: `false` if nothing was paused.
    mutating func resume() -> Bool {
        guard pauses > 0 else { return false }
        pauses -= 1
        return true
    }

    // MARK: Sending

    /// Whether nothing waits to be sent, and the system accepts datagrams.
    var isIdle: Bool { waiting == 0 && !isBlocked && !isClosed }

    /// Whether a datagram of so many bytes may wait. A single one always may.
    mutating func admits(_ count: Int) -> Bool {
        guard waiting > 0, waiting + count > mostWaiting else {
            waiting += count
            return true
        }
        isFull = true
        return false
    }

    /// So many bytes wait no more.
    mutating func left(_ count: Int) { waiting -= count }

    /// The system accepts no more.
    ///
    /// - Parameter reportsEnd: whether the descriptor becomes writable when it does.
    mutating func block(reportsEnd: Bool) { (isBlocked, isPausing) = (true, !reportsEnd) }

    mutating func unblock() { (isBlocked, isPausing) = (false, false) }

    /// Whether a sender that was refused is to be told that there is room: once, when at most half is taken.
    mutating func drains() -> Bool {
        guard isFull, waiting <= mostWaiting / 2, !isClosed else { return false }
        isFull = false
        return true
    }

    mutating func close() { (isClosed, waiting, isFull) = (true, 0, false) }
}
