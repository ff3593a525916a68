/// A block to call later, once: the result of `asyncAfter`.
///
/// Unlike Dispatch's, it can be cancelled. You need not keep it. Work items are `Sendable`.
public struct WorkItem: Sendable {
    private let source: TimerSource

    fileprivate init(_ source: TimerSource, _ deadline: RunLoop.Instant, _ leeway: Duration) {
        self.source = source
        source.schedule(deadline: deadline, leeway: leeway)
        source.core.keepUntilDelivered(source)
        source.activate()
    }

    /// A Boolean value that indicates whether the block has still to be called.
    public var isPending: Bool { source.core.isPending }

    /// A Boolean value that indicates whether ``cancel()`` has been called, before or after the block was called.
    public var isCancelled: Bool { source.isCancelled }

    /// Cancels the block: once this has returned, on any thread, it does not begin. A running block finishes, and may
    /// wait for the calling thread; see ``TimerSource/cancel()``. The block is released at once, on its loop's thread.
    /// Harmless when repeated. O(1).
    public func cancel() {
        source.cancel()
    }
}

extension DeliveryQueue {
    /// Calls `block` once, on this queue, `delay` from now at the earliest. Any thread, O(log n).
    ///
    /// With a delay of zero or less the block is called as soon as the queue is free, never at once. The default leeway
    /// is zero.
    ///
    /// - Returns: a token that can cancel the block.
    @discardableResult
    public func asyncAfter(
        _ delay: Duration, leeway: Duration = .zero, _ block: @escaping @Sendable () -> Void,
        file: StaticString = #fileID, line: UInt32 = #line
    ) -> WorkItem {
        asyncAfter(deadline: now + delay, leeway: leeway, block, file: file, line: line)
    }

    /// Calls `block` once, on this queue, not before `deadline`, and never for `distantFuture`. Any thread, O(log n).
    @discardableResult
    public func asyncAfter(
        deadline: RunLoop.Instant, leeway: Duration = .zero, _ block: @escaping @Sendable () -> Void,
        file: StaticString = #fileID, line: UInt32 = #line
    ) -> WorkItem {
        let source = TimerSource(queue: self, file: file, line: line)
        source.setEventHandler { _ in block() }
        return WorkItem(source, deadline, leeway)
    }
}

extension RunLoop {
    /// Calls `block` once, on this loop's thread, in any mode, `delay` from now at the earliest. To choose modes use
    /// `perform(afterDelay:inModes:_:)`. On the loop's thread, O(log n).
    @discardableResult
    public func asyncAfter(
        _ delay: Duration, leeway: Duration = .zero, _ block: @escaping () -> Void, file: StaticString = #fileID,
        line: UInt32 = #line
    ) -> WorkItem {
        asyncAfter(deadline: now + delay, leeway: leeway, block, file: file, line: line)
    }

    /// Calls `block` once, on this loop's thread, in any mode, not before `deadline`. On the loop's thread, O(log n).
    @discardableResult
    public func asyncAfter(
        deadline: Instant, leeway: Duration = .zero, _ block: @escaping () -> Void, file: StaticString = #fileID,
        line: UInt32 = #line
    ) -> WorkItem {
        let source = TimerSource(queue: .loop(remote), file: file, line: line)
        source.setEventHandler(on: self) { _ in block() }
        return WorkItem(source, deadline, leeway)
    }
}
