@_spi(Ports) internal import RunLoopKit

/// The timeouts of a connection.
///
/// Activity only records the time; an idle timer checks it when it fires, and waits again for the rest. Each activity
/// thus reads the clock and moves no timer. If descriptors are ready when the timeout expires, the timer fires again in
/// the next pass, because a late loop makes due calls before it reads input that has arrived meanwhile.
final class ConnectionTimers {
    private let loop: RunLoop
    private let modes: RunLoop.Modes
    private let origin: RunLoop.Origin
    private let expired: (Connection.CloseReason) -> Void
    private var lastActivity: RunLoop.Instant
    private var lastInput: RunLoop.Instant
    private var idle: DelayedCall?
    private var inputIdle: DelayedCall?
    private let beginning: RunLoop.Instant
    /// The deadlines of the connection: the total timeout, and the limit set when it finishes.
    private var ends: (total: RunLoop.Instant?, finish: RunLoop.Instant?)
    private var end: DelayedCall?
    private var nextLook: DelayedCall?

    private static let idleTimeout = CallLabel("idle timeout")
    private static let inputTimeout = CallLabel("input timeout")
    private static let totalTimeout = CallLabel("total timeout")
    private static let lingering = CallLabel("lingering")

    init(
        _ origin: RunLoop.Origin, on loop: RunLoop, _ modes: RunLoop.Modes,
        expired: @escaping (Connection.CloseReason) -> Void
    ) {
        self.loop = loop
        self.modes = modes
        self.origin = origin
        self.expired = expired
        beginning = loop.now
        (lastActivity, lastInput) = (beginning, beginning)
    }

    /// Sets the timeouts, replacing earlier ones. The total timeout counts from the beginning, the others from now.
    ///
    /// - Parameter reads: whether the connection reads now.
    func set(_ limits: Connection.Limits, while reads: @escaping () -> Bool) {
        (lastActivity, lastInput) = (loop.now, loop.now)
        idle?.cancel()
        inputIdle?.cancel()
        (idle, inputIdle) = (nil, nil)
        if let timeout = limits.idleTimeout { check(at: lastActivity + timeout, timeout) }
        if let timeout = limits.inputTimeout { check(at: lastInput + timeout, timeout, while: reads) }
        ends.total = limits.totalTimeout.map { beginning + $0 }
        arm()
    }

    /// - Parameter reads: for the input timeout, whether the connection reads; `nil` for the idle timeout.
    private func check(
        at date: RunLoop.Instant, _ timeout: Duration, while reads: (() -> Bool)? = nil, isOver: Bool = false
    ) {
        let label = reads == nil ? Self.idleTimeout : Self.inputTimeout
        let call = loop.perform(at: date, inModes: modes, label: label, origin: origin) { [unowned self] in
            if reads?() == false { lastInput = loop.now }
            let (end, now) = ((reads == nil ? lastActivity : lastInput) + timeout, loop.now)
            if end > now || loop.hasReadyDescriptors && !isOver {
                check(at: max(end, now), timeout, while: reads, isOver: end <= now)
            } else {
                expired(.idleTimeout)
            }
        }
        if reads == nil { idle = call } else { inputIdle = call }
    }

    func noteActivity() {
        if idle != nil { lastActivity = loop.now }
    }

    func noteInput() {
        noteActivity()
        beganReading()
    }

    func beganReading() {
        if inputIdle != nil { lastInput = loop.now }
    }

    /// Closes the connection after `timeout` at the latest.
    func limit(to timeout: Duration) {
        let date = loop.now + timeout
        ends.finish = min(ends.finish ?? date, date)
        arm()
    }

    private func arm() {
        guard let date = [ends.total, ends.finish].compactMap(\.self).min() else {
            end?.cancel()
            end = nil
            return
        }
        if let end, end.rearm(at: date) { return }
        end = loop.perform(at: date, inModes: modes, label: Self.totalTimeout, origin: origin) { [unowned self] in
            expired(.totalTimeout)
        }
    }

    /// Calls `look` once, after a pause.
    func look(after pause: Duration, _ look: @escaping () -> Void) {
        assert(nextLook?.isPending != true, "a connection is looked at twice")
        nextLook = loop.perform(at: loop.now + pause, inModes: modes, label: Self.lingering, origin: origin, look)
    }

    func invalidate() {
        idle?.cancel()
        inputIdle?.cancel()
        nextLook?.cancel()
        end?.cancel()
    }
}
