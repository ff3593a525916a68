extension RunLoop {
    /// A function that waits in a loop's place: for the loop and for another source of events at once.
    ///
    /// The loop calls it in step 5 of each pass (<doc:HowAPassRuns>), on the loop's thread. The function waits until
    /// `descriptor` is readable, which covers the loop's next date and requests of other threads, or until the other
    /// event has happened. If it may not wait, it only looks. The function may post blocks to the loop, which the same
    /// pass performs, and must not run the loop.
    ///
    /// - Parameters:
    ///   - descriptor: the descriptor on which the loop itself waits. Poll it for reading, by level, and do nothing
    ///     else with it.
    ///   - mayWait: whether to wait.
    /// - Returns: whether `descriptor` was found readable.
    public typealias PollFunction = (_ descriptor: Int32, _ mayWait: Bool) -> PollResult

    /// The result of a ``PollFunction``. `Sendable`.
    public enum PollResult: Sendable {
        /// The descriptor is readable, and the loop collects the events.
        case ready
        /// The descriptor is not readable. The pass continues without looking at it.
        case notReady
        /// The function has neither waited nor looked, for example because the loop runs in a mode in which there is
        /// nothing else to wait for. The loop waits by itself.
        case unserved
    }

    /// Has a function wait in the loop's place. Use it with a library that offers a set of descriptors and a time-out
    /// but no loop.
    ///
    /// For a library that has a loop of its own, see ``Guest``. A loop without a poll function pays nothing. A poll
    /// function does not keep a mode from being empty. On the loop's thread, and not in the function itself. The first
    /// call looks for the loop's descriptor in `/proc/self/fdinfo`. Follows GLib's `g_main_context_set_poll_func`.
    ///
    /// - Parameter function: the function, which the loop keeps; `nil` to have the loop wait by itself again.
    /// - Throws: ``GuestError``, in a simulation, in a recording, or without `/proc`.
    /// - Precondition: the loop has no poll function already.
    public func setPollFunction(_ function: PollFunction?) throws(GuestError) {
        checkThread()
        try driver.setPollFunction(function)
    }
}
