/// A loop's means to wait: the time, a way to sleep, and events of descriptors.
///
/// A driver never calls user code. It knows a deadline but no timers, and watched descriptors but no modes. It is used
/// on its loop's thread only; other threads use its ``Waker``.
package protocol Driver: AnyObject {
    /// The time, read afresh.
    var now: RunLoop.Instant { get }

    /// Wakes ``wait(until:into:)`` from any thread.
    var waker: any Waker { get }

    /// Sleeps until `deadline`, until a watched descriptor is ready, or until woken. If the deadline has come already,
    /// it only looks. Ready descriptors are appended to `ready`.
    func wait(until deadline: RunLoop.Instant, into ready: ReadyQueue) -> WaitOutcome

    /// A descriptor that another loop finds readable when a wait would end. Its owner may poll it and nothing else.
    func findDescriptor() throws(RunLoop.GuestError) -> Int32

    /// Has that descriptor become readable at `date` at the latest, and at once if it has come.
    func setAlarm(to date: RunLoop.Instant)

    /// Has a function wait for that descriptor in the driver's place.
    func setPollFunction(_ function: RunLoop.PollFunction?) throws(RunLoop.GuestError)

    /// Throws if `descriptor` cannot be watched.
    func check(_ descriptor: Int32) throws(DescriptorError)

    /// Begins to report `token` whenever `descriptor` is ready for one of `events`.
    func watch(_ descriptor: Int32, for events: DescriptorEvents, token: SourceToken) throws(DescriptorError)

    /// Begins to report `token` each time the wall clock was set.
    func watchWallClock(token: SourceToken)

    /// Ends what ``watch(_:for:token:)`` or ``watchWallClock(token:)`` began. Events collected before remain.
    func unwatch(_ token: SourceToken)
}

extension Driver {
    package func findDescriptor() throws(RunLoop.GuestError) -> Int32 { throw .noSystem }

    package func setAlarm(to date: RunLoop.Instant) {}

    package func setPollFunction(_ function: RunLoop.PollFunction?) throws(RunLoop.GuestError) {
        if function != nil { throw .noSystem }
    }

    package func check(_ descriptor: Int32) throws(DescriptorError) {
        try DescriptorError.check(descriptor)
    }
}

/// How a wait ended.
package enum WaitOutcome {
    /// The deadline has come, something is ready, or somebody woke the loop.
    case woke
    /// Virtual time only: nothing could ever end this wait.
    case starved
}

/// The part of a driver that other threads use.
package protocol Waker: Sendable {
    /// Ends the driver's wait.
    func wake()

    /// The time on the driver's clock.
    var now: RunLoop.Instant { get }

    /// A job of a task has come from another thread, the calling one.
    func tookJob(_ job: UnownedJob)

    /// Whether it is told of mail.
    var notesMail: Bool { get }

    /// Mail that is no job comes from the calling thread.
    func mailComes()

    /// The order in which the loop takes its mail; `nil` for that in which the mail comes.
    var mailOrder: (any MailOrder)? { get }
}

extension Waker {
    package var mailOrder: (any MailOrder)? { nil }

    package func tookJob(_ job: UnownedJob) {}

    package var notesMail: Bool { false }

    package func mailComes() {}
}
