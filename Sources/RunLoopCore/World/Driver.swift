/// A loop's means to wait: the time, a way to sleep, and events of descriptors.
///
/// A driver never calls user code. It knows a deadline but no timers, and watched descriptors but no modes. Use a
/// driver on its loop's thread only; other threads use its ``Waker``.
@_spi(Ports) public protocol Driver: AnyObject {
    /// The time, read afresh.
    var now: RunLoop.Instant { get }

    /// Wakes ``wait(until:into:)`` from any thread.
    var waker: any Waker { get }

    /// Sleeps until `deadline`, until a watched descriptor is ready, or until woken, and appends ready descriptors to
    /// `ready`. Does not sleep if the deadline has come already.
    func wait(until deadline: RunLoop.Instant, into ready: ReadyQueue) -> WaitOutcome

    /// Returns the descriptor a host polls; readable when ``wait(until:into:)`` would return. The host may do nothing
    /// else with it.
    func findDescriptor() throws(RunLoop.GuestError) -> Int32

    /// Makes the descriptor of ``findDescriptor()`` readable at `date` at the latest; at once if that has passed.
    func setAlarm(to date: RunLoop.Instant)

    /// Has a function wait for the descriptor of ``findDescriptor()`` in the driver's place.
    func setPollFunction(_ function: RunLoop.PollFunction?) throws(RunLoop.GuestError)

    /// Throws if `descriptor` cannot be watched.
    func check(_ descriptor: Int32) throws(DescriptorError)

    /// Begins to report `token` in each wait in which `descriptor` is ready for one of `events`, with those of them for
    /// which it is. A hang-up and an error make it ready for all. Two tokens may watch one descriptor.
    ///
    /// The caller ends the watch before it closes the descriptor. A descriptor that is closed earlier is reported in
    /// each wait, or never again: to `poll` it is ready for everything, and `epoll` forgets a file with the last
    /// descriptor that refers to it. Other watches go on in either case. Once the watch has ended, the number can be
    /// watched anew.
    func watch(_ descriptor: Int32, for events: DescriptorEvents, token: SourceToken) throws(DescriptorError)

    /// Begins to report `token` as readable, once each time the wall clock is set. Wall timers depend on it.
    func watchWallClock(token: SourceToken)

    /// Ends a watch of ``watch(_:for:token:)`` or ``watchWallClock(token:)``; does nothing for another token. Events
    /// collected before remain.
    func unwatch(_ token: SourceToken)
}

@_spi(Ports) extension Driver {
    public func findDescriptor() throws(RunLoop.GuestError) -> Int32 { throw .noSystem }

    public func setAlarm(to date: RunLoop.Instant) {}

    public func setPollFunction(_ function: RunLoop.PollFunction?) throws(RunLoop.GuestError) {
        if function != nil { throw .noSystem }
    }

    public func check(_ descriptor: Int32) throws(DescriptorError) {
        try DescriptorError.check(descriptor)
    }
}

/// The reason why a driver's wait ended.
@_spi(Ports) public enum WaitOutcome {
    /// The deadline has come, a descriptor is ready, or the driver was woken.
    case woke
    /// Nothing could ever end this wait. On virtual time only.
    case starved
}

/// The part of a driver that other threads use.
@_spi(Ports) public protocol Waker: Sendable {
    /// Ends the driver's wait.
    func wake()

    /// The time of the loop. Any thread.
    var now: RunLoop.Instant { get }

    /// Notes that the calling thread, which is not the loop's, has posted a job of a task.
    func tookJob(_ job: UnownedJob)

    /// Indicates whether ``mailComes()`` must be called.
    var notesMail: Bool { get }

    /// Notes that the calling thread is about to post mail other than a job.
    func mailComes()

    /// The order in which the loop takes its mail; `nil` for the order of arrival.
    var mailOrder: (any MailOrder)? { get }
}

@_spi(Ports) extension Waker {
    public var mailOrder: (any MailOrder)? { nil }

    public func tookJob(_ job: UnownedJob) {}

    public var notesMail: Bool { false }

    public func mailComes() {}
}
