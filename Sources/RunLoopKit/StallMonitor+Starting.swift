public import RunLoopCore
internal import RunLoopLibevent

extension StallMonitor {
    /// Begins to watch a loop. On the loop's thread.
    ///
    /// - Parameters:
    ///   - loop: the loop.
    ///   - threshold: how long a call may last, above zero; looked at four times as often.
    ///   - report: called on the monitor's thread while the handler is still at it, and again when it has ended; to be
    ///     quick, or the monitor sees less.
    public convenience init(
        _ loop: RunLoop, threshold: Duration, report: @escaping @Sendable (Stall) -> Void
    ) {
        let peer = RunLoop.makePeerOfInstalled(named: "stalls", isService: true) ?? LibeventPeer()
        self.init(loop, threshold: threshold, peer: peer, report: report)
    }
}
