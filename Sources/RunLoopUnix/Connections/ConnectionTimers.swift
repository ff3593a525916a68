internal import RunLoopKit

/// The timeouts of a connection.
///
/// Activity only notes the time. The idle timer looks at it when it fires, and waits again for the rest: each byte
/// costs a reading of the clock and moves no timer.
final class ConnectionTimers {
    private let loop: RunLoop
    private let modes: RunLoop.Modes
    private let origin: RunLoop.Origin
    private let expired: (Connection.CloseReason) -> Void
    // Unchecked as in `Connection`.
    @exclusivity(unchecked) private var lastActivity: RunLoop.Instant
    @exclusivity(unchecked) private var idle: DelayedCall?
    private var total: (call: DelayedCall, date: RunLoop.Instant)?

    private static let idleTimeout = CallLabel("idle timeout")
    private static let totalTimeout = CallLabel("total timeout")

    init(
        _ limits: Connection.Limits, _ origin: RunLoop.Origin, on loop: RunLoop, _ modes: RunLoop.Modes,
        expired: @escaping (Connection.CloseReason) -> Void
    ) {
        self.loop = loop
        self.modes = modes
        self.origin = origin
        self.expired = expired
        lastActivity = loop.now
        if let timeout = limits.idleTimeout { checkIdle(at: lastActivity + timeout, timeout) }
        if let timeout = limits.totalTimeout { limit(to: timeout) }
    }

    private func checkIdle(at date: RunLoop.Instant, _ timeout: Duration) {
        idle = loop.perform(at: date, inModes: modes, label: Self.idleTimeout, origin: origin) { [unowned self] in
            let end = lastActivity + timeout
            if end > loop.now { checkIdle(at: end, timeout) } else { expired(.idleTimeout) }
        }
    }

    func noteActivity() {
        if idle != nil { lastActivity = loop.now }
    }

    /// Ends the connection no later than this from now.
    func limit(to timeout: Duration) {
        let end = loop.now + timeout
        if let total {
            if end < total.date { total.call.rearm(at: end) }
            self.total!.date = min(end, total.date)
            return
        }
        let call = loop.perform(at: end, inModes: modes, label: Self.totalTimeout, origin: origin) { [unowned self] in
            expired(.totalTimeout)
        }
        total = (call, end)
    }

    func invalidate() {
        idle?.cancel()
        total?.call.cancel()
    }
}
