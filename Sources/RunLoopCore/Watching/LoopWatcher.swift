/// Follows what a run loop does: calls of handlers, sleeps, their causes and effects, and moved bytes.
///
/// A watcher names the groups of events that it follows, and is told each of them as a value. This one prints a line for
/// each handler that takes more than 10 ms:
///
/// ```swift
/// final class SlowHandlers: LoopWatcher {
///     var events: RunLoop.WatchedEvent.Groups { .calls }
///
///     func watch(_ event: RunLoop.WatchedEvent) {
///         guard case .callEnded(let call, let time) = event, time - call.begin > .milliseconds(10) else { return }
///         print("\(call.callee) took \(time - call.begin)")
///     }
/// }
///
/// loop.addWatcher(SlowHandlers())
/// ```
///
/// The loop calls ``watch(_:)`` on its own thread, at the moment of the event, when its state is in order. The method
/// may read what the loop shows, such as its time, its mode and its statistics, keep values, wake another thread, and
/// add and remove watchers, which takes effect with the next event. It must not run the loop, add, arm, remove or
/// invalidate items, post to the loop, or call handlers of the program: what follows from a watcher's own acts would
/// be told as effects of the handler under way. It must be quick, because the loop waits for it, and its time counts
/// as the handler's or the loop's own. It does not throw, and does not block.
///
/// A call within a nested run ends before the call that runs the loop, whose duration includes it. Calls outside of a
/// run are not told: handlers called by hand, and the last jobs of a loop that has ended.
///
/// A watcher belongs to its loop's thread, and need not be `Sendable`. One watcher may follow several loops of a
/// thread.
@_spi(Ports) public protocol LoopWatcher: AnyObject {
    /// The events of which the watcher is told. Asked once, when the watcher is added. Events that nobody follows cost
    /// the loop nothing.
    var events: RunLoop.WatchedEvent.Groups { get }

    /// Called with each event of those groups, on the loop's thread.
    func watch(_ event: RunLoop.WatchedEvent)
}
