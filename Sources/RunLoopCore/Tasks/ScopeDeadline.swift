/// The deadline of a scope, within the deadlines of the scopes around it. On the loop's thread.
final class ScopeDeadline {
    var date: RunLoop.Instant
    /// Cancels the scope. Harmless when repeated; `nil` once the scope's tasks have ended.
    var passed: (() -> Void)?
    /// The deadline of the scope around this one.
    let outer: ScopeDeadline?
    /// `true` if the scope is shielded from outer cancellations and deadlines.
    let isShield: Bool
    private let loop: RunLoop

    init(on loop: RunLoop, at date: RunLoop.Instant, within outer: ScopeDeadline?, isShield: Bool) {
        (self.loop, self.date, self.outer, self.isShield) = (loop, date, outer, isShield)
    }

    /// Cancels the scopes whose deadline has passed, the outermost first: a task may have computed for so long that
    /// the loop has not come to it yet.
    func notice() {
        guard earliest < .distantFuture, case let now = loop.now, earliest <= now else { return }
        cancelPassed(at: now)
    }

    /// The deadline of the scope whose cancellation cancels this one.
    private var canceller: ScopeDeadline? { isShield ? nil : outer }

    private var earliest: RunLoop.Instant { min(date, canceller?.earliest ?? .distantFuture) }

    private func cancelPassed(at now: RunLoop.Instant) {
        canceller?.cancelPassed(at: now)
        if date <= now { passed?() }
    }

    /// `true` if the scope is within a shield, or is one.
    var isShielded: Bool { isShield || outer?.isShielded == true }
}
