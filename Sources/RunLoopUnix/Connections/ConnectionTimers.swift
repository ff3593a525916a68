internal import RunLoopKit

/// The timeouts of a connection.
///
/// Activity only notes the time. The idle timer looks at it when it fires, and is armed again for the rest: each byte
/// costs a reading of the clock and moves no timer.
final class ConnectionTimers {
    private let loop: RunLoop
    private let modes: RunLoop.Modes
    private let origin: RunLoop.Origin
    private let expired: (Connection.CloseReason) -> Void
    // Unchecked as in `Connection`.
    @exclusivity(unchecked) private var lastActivity: RunLoop.Instant
    @exclusivity(unchecked) private var idle: Timer?
    private var total: Timer?

    init(
        _ limits: Connection.Limits, _ origin: RunLoop.Origin, on loop: RunLoop, _ modes: RunLoop.Modes,
        expired: @escaping (Connection.CloseReason) -> Void
    ) {
        self.loop = loop
        self.modes = modes
        self.origin = origin
        self.expired = expired
        lastActivity = loop.now
        if let timeout = limits.idleTimeout {
            idle = schedule("idle timeout", timeout) { [unowned self] in checkIdle($0, timeout) }
        }
        if let timeout = limits.totalTimeout { limit(to: timeout) }
    }

    private func schedule(_ name: String, _ delay: Duration, _ block: @escaping (Timer) -> Void) -> Timer {
        let timer = Timer(at: loop.now + delay, origin: origin, block: block)
        timer.name = name
        loop.add(timer, forMode: modes)
        return timer
    }

    private func checkIdle(_ timer: Timer, _ timeout: Duration) {
        let end = lastActivity + timeout
        guard end > loop.now else { return expired(.idleTimeout) }
        timer.rearm(at: end)
    }

    func noteActivity() {
        if idle != nil { lastActivity = loop.now }
    }

    /// Ends the connection no later than this from now.
    func limit(to timeout: Duration) {
        let end = loop.now + timeout
        if let total {
            total.fireDate = min(total.fireDate, end)
        } else {
            total = schedule("total timeout", timeout) { [unowned self] _ in expired(.totalTimeout) }
        }
    }

    func invalidate() {
        idle?.invalidate()
        total?.invalidate()
    }
}
