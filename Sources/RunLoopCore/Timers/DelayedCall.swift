/// A call that a loop makes later, once: `performSelector:withObject:afterDelay:`.
///
/// The loop keeps what is called, its target and its argument until the call has been made or cancelled. It makes the
/// call only while it runs in one of the call's modes. A call belongs to its loop's thread and is not `Sendable`.
///
/// Source: Apple's page on `performSelector:withObject:afterDelay:`.
public final class DelayedCall {
    private let timer: Timer

    fileprivate init(_ timer: Timer) {
        self.timer = timer
    }

    /// Whether the call has still to be made.
    public var isPending: Bool { timer.isValid }

    /// Cancels the call and lets go of its target and argument. Harmless once the call has been made or is being made.
    /// On the loop's thread, O(1) on average.
    public func cancel() {
        timer.invalidate()
    }
}

@available(*, unavailable, message: "a delayed call belongs to its loop's thread")
extension DelayedCall: Sendable {}

/// The delayed calls of a loop that can be found by their target.
private final class DelayedCallTable {
    struct Entry {
        let timer: Timer
        let name: String?
        let argument: AnyHashable?
    }

    private var pending: [ObjectIdentifier: [ObjectIdentifier: Entry]] = [:]

    static let local = RunLoop.Local { _ in DelayedCallTable() }

    func calls(of target: AnyObject) -> [Entry] {
        pending[ObjectIdentifier(target)].map { Array($0.values) } ?? []
    }

    func add(_ entry: Entry, of target: ObjectIdentifier) {
        pending[target, default: [:]][ObjectIdentifier(entry.timer)] = entry
    }

    func remove(_ timer: Timer, of target: ObjectIdentifier) {
        pending[target]?[ObjectIdentifier(timer)] = nil
        if pending[target]?.isEmpty == true { pending[target] = nil }
    }
}

extension RunLoop {
    /// Calls `block` once, `delay` from now at the earliest, in one of `modes`.
    ///
    /// With a delay of zero or less the call is made in the next pass, never at once. Calls with equal dates are made
    /// in the order in which they were requested. With no modes at all nothing is scheduled. On the loop's thread,
    /// O(log n).
    ///
    /// - Returns: a token that can cancel the call. You need not keep it.
    @discardableResult
    public func perform(
        afterDelay delay: Duration, inModes modes: Modes = .default, _ block: @escaping () -> Void,
        file: StaticString = #fileID, line: UInt32 = #line
    ) -> DelayedCall {
        perform(at: now + max(.zero, delay), inModes: modes, block, file: file, line: line)
    }

    /// Calls `block` once, not before `date`, in one of `modes`. On the loop's thread, O(log n).
    @discardableResult
    public func perform(
        at date: Instant, inModes modes: Modes = .default, _ block: @escaping () -> Void, file: StaticString = #fileID,
        line: UInt32 = #line
    ) -> DelayedCall {
        schedule(oneShot(at: date, block, file: file, line: line), modes)
    }

    /// Calls a method of `target` once, `delay` from now at the earliest, in one of `modes`. The loop keeps the target
    /// until then. On its thread, O(log n).
    ///
    /// - Parameters:
    ///   - selector: the method, for example `Player.skip`.
    ///   - target: the object whose method is called.
    ///   - name: the name by which ``cancelPreviousPerformRequests(withTarget:named:argument:)`` finds the call, as
    ///     Apple's finds it by its selector.
    ///   - delay: the least time until the call.
    ///   - modes: the modes in which the call may be made.
    @discardableResult
    public func perform<Target: AnyObject>(
        _ selector: @escaping (Target) -> () -> Void, target: Target, named name: String? = nil,
        afterDelay delay: Duration, inModes modes: Modes = .default, file: StaticString = #fileID, line: UInt32 = #line
    ) -> DelayedCall {
        let timer = oneShot(at: now + max(.zero, delay), { selector(target)() }, file: file, line: line)
        return schedule(timer, modes, target: target, named: name)
    }

    /// Calls a method of `target` with an argument. Everything else is as without one.
    @discardableResult
    public func perform<Target: AnyObject, Argument: Hashable>(
        _ selector: @escaping (Target) -> (Argument) -> Void, target: Target, with argument: Argument,
        named name: String? = nil, afterDelay delay: Duration, inModes modes: Modes = .default,
        file: StaticString = #fileID, line: UInt32 = #line
    ) -> DelayedCall {
        let timer = oneShot(at: now + max(.zero, delay), { selector(target)(argument) }, file: file, line: line)
        return schedule(timer, modes, target: target, named: name, argument: argument)
    }

    /// Cancels every pending call of a method of `target` in this loop, in all modes. On the loop's thread.
    public func cancelPreviousPerformRequests(withTarget target: AnyObject) {
        cancelCalls(of: target) { _ in true }
    }

    /// Cancels the pending calls of `target` that have this name and an equal argument. Without an argument it matches
    /// only calls without one. On the loop's thread.
    public func cancelPreviousPerformRequests(
        withTarget target: AnyObject, named name: String, argument: AnyHashable? = nil
    ) {
        cancelCalls(of: target) { $0.name == name && $0.argument == argument }
    }

    private func cancelCalls(of target: AnyObject, where matches: (DelayedCallTable.Entry) -> Bool) {
        for entry in self[DelayedCallTable.local].calls(of: target).filter(matches) { entry.timer.invalidate() }
    }

    private func oneShot(at date: Instant, _ body: @escaping () -> Void, file: StaticString, line: UInt32) -> Timer {
        Timer(at: date, block: { _ in body() }, file: file, line: line)
    }

    private func schedule(
        _ timer: Timer, _ modes: Modes, target: AnyObject? = nil, named name: String? = nil,
        argument: AnyHashable? = nil
    ) -> DelayedCall {
        guard !modes.isEmpty else {
            timer.invalidate()
            return DelayedCall(timer)
        }
        if let target {
            let id = ObjectIdentifier(target)
            let table = self[DelayedCallTable.local]
            table.add(.init(timer: timer, name: name, argument: argument), of: id)
            timer.invalidationHandler = { [unowned table, unowned timer] in table.remove(timer, of: id) }
        }
        add(timer, forMode: modes)
        return DelayedCall(timer)
    }
}
