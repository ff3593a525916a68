/// Follows what a run loop does: calls of handlers, sleeps, their causes and effects, and moved bytes.
///
/// A watcher is told events as values, by methods of which each does nothing unless the watcher implements it. This one
/// prints a line for each handler that takes more than 10 ms:
///
/// ```swift
/// final class SlowHandlers: LoopWatcher {
///     var events: RunLoop.WatchedEvents { .calls }
///
///     func callEnded(_ call: RunLoop.WatchedCall, at time: RunLoop.Instant) {
///         if time - call.begin > .milliseconds(10) { print("\(call.callee) took \(time - call.begin)") }
///     }
/// }
///
/// loop.addWatcher(SlowHandlers())
/// ```
///
/// The loop calls every method on its own thread, at the moment of the event, when its state is in order. A method may
/// read what the loop shows, such as its time, its mode and its statistics, keep values, wake another thread, and add
/// and remove watchers, which takes effect with the next event. It must not run the loop, add, arm, remove or
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
    /// The events of which the watcher is told; by default ``RunLoop/WatchedEvents/activity``. Asked once, when the
    /// watcher is added. What nobody follows costs the loop nothing.
    var events: RunLoop.WatchedEvents { get }

    // MARK: Calls

    /// Called when a run in a mode begins, before its first observer is called.
    func runBegan(in mode: RunLoop.Mode, at time: RunLoop.Instant)

    /// Called when a run in a mode has ended, after its last observer was called.
    func runEnded(in mode: RunLoop.Mode, at time: RunLoop.Instant)

    /// Called before a handler is called, or a task runs until its next wait.
    func callBegan(_ call: RunLoop.WatchedCall)

    /// Called when a handler has returned, or a task waits. The call may have begun before the watcher was added.
    func callEnded(_ call: RunLoop.WatchedCall, at time: RunLoop.Instant)

    /// Called on virtual time, before the call under way takes time: its thread works, or waits for another one.
    func callTakesTime()

    // MARK: Sleeps

    /// Called before the loop sleeps until a date at the latest. The sleeps of a guest's host have an end only.
    func fellAsleep(in mode: RunLoop.Mode, until date: RunLoop.Instant, at time: RunLoop.Instant)

    /// Called when the loop has slept, before it calls anything.
    func wokeUp(in mode: RunLoop.Mode, by reason: RunLoop.WakeUpReason, at time: RunLoop.Instant)

    // MARK: Effects

    /// Called when an item is armed that fires once: a timer, a timeout, or a delayed call.
    func armed(_ callee: RunLoop.Callee)

    /// Called when this loop's thread posts a block or wakes a task, here or in another loop whose effects are
    /// followed. It is the posting thread; a thread without a loop tells nobody.
    func posted(_ callee: RunLoop.Callee)

    /// Called at the beginning of a posted block. The block has the number of its post, and the name of the thread that
    /// posted it if that is another one.
    func callFollows(_ number: UInt64, postedBy thread: String?)

    // MARK: Bytes

    /// Called when a connection has moved bytes. Connections that were started before the watcher was added are not
    /// followed.
    func moved(received: Int, sent: Int, by descriptor: Int32, of callee: RunLoop.Callee)

    // MARK: Trace

    /// Called with a trace event: see ``RunLoop/trace``.
    func traced(_ event: RunLoop.TraceEvent)
}

@_spi(Ports)
extension LoopWatcher {
    public var events: RunLoop.WatchedEvents { .activity }

    public func runBegan(in mode: RunLoop.Mode, at time: RunLoop.Instant) {}
    public func runEnded(in mode: RunLoop.Mode, at time: RunLoop.Instant) {}
    public func callBegan(_ call: RunLoop.WatchedCall) {}
    public func callEnded(_ call: RunLoop.WatchedCall, at time: RunLoop.Instant) {}
    public func callTakesTime() {}
    public func fellAsleep(in mode: RunLoop.Mode, until date: RunLoop.Instant, at time: RunLoop.Instant) {}
    public func wokeUp(in mode: RunLoop.Mode, by reason: RunLoop.WakeUpReason, at time: RunLoop.Instant) {}
    public func armed(_ callee: RunLoop.Callee) {}
    public func posted(_ callee: RunLoop.Callee) {}
    public func callFollows(_ number: UInt64, postedBy thread: String?) {}
    public func moved(received: Int, sent: Int, by descriptor: Int32, of callee: RunLoop.Callee) {}
    public func traced(_ event: RunLoop.TraceEvent) {}
}
