/// A call that a loop makes later, once: `performSelector:withObject:afterDelay:`.
///
/// The loop keeps the block, or the target and its argument, until the call has been made or cancelled. It makes the
/// call only while it runs in one of the call's modes.
///
/// A delayed call is the cheapest way to do something later: it is no object and takes 72 bytes of its loop's, besides
/// the captures of its block. The token is a value of 16 bytes that keeps neither block nor loop. It belongs to its
/// loop's thread and is not `Sendable`.
///
/// Source: Apple's page on `performSelector:withObject:afterDelay:`.
public struct DelayedCall: Hashable, BitwiseCopyable {
    // A counted reference to the loop would cost two locked instructions for each call.
    private let loopNumber: UInt64
    fileprivate let token: CallToken

    fileprivate init(_ token: CallToken, in loop: RunLoop) {
        loopNumber = loop.number
        self.token = token
    }

    /// The loop; `nil` if it has ended.
    private var loop: UnownedReference<RunLoop>? { RunLoop.living(loopNumber) }

    /// A Boolean value that indicates whether the call has still to be made. On the loop's thread, O(1).
    public var isPending: Bool { loop?.with { $0.timers.isPending(token) } ?? false }

    /// Cancels the call and releases its target and argument. Harmless once the call has been made or is being made. On
    /// the loop's thread, O(1) on average.
    public func cancel() {
        loop?.with { $0.cancel(token) }
    }

    /// Moves a pending call to `date`, behind all other calls due then. Does nothing once the call has been made or
    /// cancelled, or while it is being made. On the loop's thread, O(1) for a later date and O(log n) for an earlier
    /// one.
    ///
    /// - Returns: whether the call was pending.
    @discardableResult
    public func rearm(at date: RunLoop.Instant) -> Bool {
        loop?.with { loop in
            loop.noticeUse()
            return loop.timers.move(token, to: date)
        } ?? false
    }
}

@available(*, unavailable, message: "a delayed call belongs to its loop's thread")
extension DelayedCall: Sendable {}

extension RunLoop {
    /// Calls `block` once, `delay` from now at the earliest, in one of `modes`.
    ///
    /// With a delay of zero or less the call is made in the next pass, never at once. Calls with equal dates are made
    /// in the order in which they were requested. If `modes` is empty, nothing is scheduled. On the loop's thread,
    /// O(log n).
    ///
    /// - Returns: a token that can cancel the call. You need not keep it.
    @discardableResult
    public func perform(
        afterDelay delay: Duration, inModes modes: Modes = .default, _ block: consuming @escaping () -> Void,
        file: StaticString = #fileID, line: UInt32 = #line
    ) -> DelayedCall {
        perform(at: now + max(.zero, delay), inModes: modes, origin: Origin(file: file, line: line), consume block)
    }

    /// Calls `block` once, not before `date`, in one of `modes`. On the loop's thread, O(log n).
    @discardableResult
    public func perform(
        at date: Instant, inModes modes: Modes = .default, _ block: consuming @escaping () -> Void,
        file: StaticString = #fileID, line: UInt32 = #line
    ) -> DelayedCall {
        perform(at: date, inModes: modes, origin: Origin(file: file, line: line), consume block)
    }

    /// Calls `block` on behalf of other code, with that code's place, and with a label for reports.
    @discardableResult
    @inline(__always)
    @_spi(Ports) public func perform(
        at date: Instant, inModes modes: Modes, label: CallLabel = .call, origin: Origin,
        _ block: consuming @escaping () -> Void
    ) -> DelayedCall {
        checkThread()
        guard !modes.isEmpty, !hasEnded else { return DelayedCall(.none, in: self) }
        let token = add(consume block, label, origin, modes, at: date, until: date)
        if isWatched(.effects) { watchedCause(of: Callee(.delayedCall, label.name, origin, number: token.word)) }
        return DelayedCall(token, in: self)
    }

    @inline(__always)
    func add(
        _ block: consuming @escaping () -> Void, _ label: CallLabel, _ origin: Origin, _ modes: Modes,
        at date: Instant, until latest: Instant
    ) -> CallToken {
        timers.add(consume block, label, origin, modes, common: modeTable.common, at: date, until: latest)
    }

    func cancel(_ token: CallToken) {
        guard let call = timers.cancel(token) else { return }
        if call.label == .targetedCall { self[TargetedCalls.local].remove(token) }
        // The block is released only here, when everything is in order: its deinits may do anything.
    }

    func make(_ slot: CallTable.Reference) {
        let (label, origin, date) = (slot.pointee.label, slot.pointee.origin, slot.pointee.date)
        let (block, token) = timers.beginCall(slot)
        if label == .sleep {
            // The block only hands the task's job to its queue.
            if isWatched(.calls) { watchedDateWithoutCall() }
            block()
        } else {
            if label == .targetedCall { self[TargetedCalls.local].remove(token) }
            if isTraced {
                let words = label.name.map { "call \($0) due \(date)" } ?? "call due \(date)"
                emit(.called(.delayedCall, name: label.name, origin: origin, words))
            }
            dispatch(Callee(.delayedCall, label.name, origin, number: token.word), block)
        }
        // A loop that has ended has released its slots.
        if !hasEnded { timers.endCall(slot, token) }
    }

    /// Calls a method of `target` once, `delay` from now at the earliest, in one of `modes`. The loop keeps the target
    /// until then. On its thread, O(log n).
    ///
    /// - Parameters:
    ///   - selector: the method, for example `Player.skip`.
    ///   - target: the object whose method is called.
    ///   - name: the name by which ``cancelPreviousPerformRequests(withTarget:named:argument:)`` finds the call, as
    ///     Apple's method finds it by its selector.
    ///   - delay: the least time until the call.
    ///   - modes: the modes in which the call may be made.
    @discardableResult
    public func perform<Target: AnyObject>(
        _ selector: @escaping (Target) -> () -> Void, target: Target, named name: String? = nil,
        afterDelay delay: Duration, inModes modes: Modes = .default, file: StaticString = #fileID, line: UInt32 = #line
    ) -> DelayedCall {
        perform(
            at: now + max(.zero, delay), inModes: modes, target: target, named: name, with: nil,
            Origin(file: file, line: line)
        ) { selector(target)() }
    }

    /// Calls a method of `target` with an argument, and otherwise like the method without one.
    @discardableResult
    public func perform<Target: AnyObject, Argument: Hashable>(
        _ selector: @escaping (Target) -> (Argument) -> Void, target: Target, with argument: Argument,
        named name: String? = nil, afterDelay delay: Duration, inModes modes: Modes = .default,
        file: StaticString = #fileID, line: UInt32 = #line
    ) -> DelayedCall {
        perform(
            at: now + max(.zero, delay), inModes: modes, target: target, named: name, with: argument,
            Origin(file: file, line: line)
        ) { selector(target)(argument) }
    }

    /// Cancels every pending call of a method of `target` in this loop, in all modes. On the loop's thread, O(number of
    /// calls cancelled) on average.
    public func cancelPreviousPerformRequests(withTarget target: AnyObject) {
        checkThread()
        for call in self[TargetedCalls.local].calls(of: target) { cancel(call) }
    }

    /// Cancels the pending calls of `target` that have this name and an equal argument. Without an argument, matches
    /// only calls without one. On the loop's thread, O(number of calls cancelled) on average, no matter how many calls
    /// the target has.
    public func cancelPreviousPerformRequests(
        withTarget target: AnyObject, named name: String, argument: AnyHashable? = nil
    ) {
        checkThread()
        for call in self[TargetedCalls.local].calls(of: target, named: name, argument) { cancel(call) }
    }

    private func perform(
        at date: Instant, inModes modes: Modes, target: AnyObject, named name: String?, with argument: AnyHashable?,
        _ origin: Origin, _ block: @escaping () -> Void
    ) -> DelayedCall {
        let call = perform(at: date, inModes: modes, label: .targetedCall, origin: origin, block)
        if call.isPending { self[TargetedCalls.local].add(call.token, of: target, named: name, argument) }
        return call
    }
}
