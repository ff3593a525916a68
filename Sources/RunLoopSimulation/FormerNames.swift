public import RunLoopCore

// Names of version 0.4.0, which the next version no longer has.

extension Simulation {
    /// The former name of ``HostError``.
    @available(*, deprecated, renamed: "HostError")
    public typealias HostFailure = HostError

    /// The former spelling: the label is `in:` now.
    @available(*, deprecated, renamed: "drag(from:until:in:)")
    public func drag(from start: RunLoop.Instant, until end: RunLoop.Instant, mode: RunLoop.Mode) {
        drag(from: start, until: end, in: mode)
    }

    /// The former spelling: the label is `in:` now.
    @available(*, deprecated, renamed: "mayDrag(for:in:atMost:around:)")
    public func mayDrag(
        for duration: Duration, mode: RunLoop.Mode, atMost most: Int = 1,
        around: @escaping (() -> Void) -> Void = { $0() }
    ) {
        mayDrag(for: duration, in: mode, atMost: most, around: around)
    }
}
