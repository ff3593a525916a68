/// A timer that is a part of its user's object: a class whose method a loop calls once, at a date.
///
/// For a session that ends when nothing has come for a minute, a request that is given up, or an entry of a cache that
/// expires, subclass this class and override ``timeoutExpired()``. An object with another superclass, or with several
/// timeouts, has them in properties.
///
/// ```swift
/// final class Session: Timeout {
///     func begin(on loop: RunLoop) { loop.add(self, at: loop.now + .seconds(60)) }
///     func received(on loop: RunLoop) { rearm(at: loop.now + .seconds(60)) }
///     override func timeoutExpired() { print("nothing came for a minute") }
/// }
/// ```
///
/// Adding, moving, cancelling and firing allocate nothing: there is no block, and the loop's entry is 16 bytes. A
/// timeout may be added again at any time, also in its own call. A ``Timer`` repeats on a grid, counts the dates it
/// missed, and can have a tolerance; a ``DelayedCall`` needs no class.
///
/// Unlike other items, a timeout belongs to its holder: the loop does not keep it, and the release of the last
/// reference cancels it. Hold it in a property; a constant of a function may be released after its last use. A timeout
/// belongs to the thread of its loop, where it must also be released as long as it is scheduled, and the end of its
/// loop invalidates it.
///
/// Source: folly's `AsyncTimeout`; libev's and libevent's timers in memory of the caller.
open class Timeout: RunLoop.TimedItem {
    // With this field an object has 72 bytes, all that the allocator gives in a block of 80.
    private final var date = RunLoop.Instant.distantFuture

    /// The index in the queue that marks an invalid timeout: a field for that would add 8 bytes to each.
    private static let indexOfInvalid: Int32 = -2

    /// Creates a timeout that is not scheduled.
    ///
    /// - Parameters:
    ///   - file: the place for ``RunLoop/Item/origin``, with `line`.
    ///   - line: the line of that place.
    public init(file: StaticString = #fileID, line: UInt32 = #line) {
        super.init(origin: RunLoop.Origin(file: file, line: line))
    }

    /// Creates a timeout on behalf of other code, with that code's place.
    public override init(origin: RunLoop.Origin) {
        super.init(origin: origin)
    }

    deinit {
        cancel()
    }

    /// Called by the loop when the date has come. Override this method; the default does nothing.
    ///
    /// The timeout is no longer scheduled when this method returns, unless it was moved or added meanwhile. The loop
    /// does not call it again before it has returned, not even in a nested run. On the loop's thread.
    open func timeoutExpired() {}

    /// The date on which the timeout expires; `nil` while it is not scheduled. During its call, the date that has come,
    /// or the next one if it was moved or added meanwhile. On the loop's thread, O(1).
    public final var fireDate: RunLoop.Instant? { home == nil ? nil : date }

    /// Moves a scheduled timeout to `date`, behind all others due then. In its own call, schedules it again, in the
    /// same modes. On the loop's thread, O(1) for a later date and O(log n) for an earlier one.
    ///
    /// - Returns: whether the timeout was scheduled.
    @discardableResult
    public final func rearm(at date: RunLoop.Instant) -> Bool {
        guard let home else { return false }
        home.with { move(to: date, in: $0) }
        return true
    }

    /// Removes the timeout from its loop: it does not expire, not even in a pass that has begun. It can be added again.
    /// Harmless if it is not scheduled. On the loop's thread, O(1) on average, O(log n) at worst.
    public final func cancel() {
        guard let home else { return }
        if let here = RunLoop.installedReference, here == home {
            here.with {
                $0.noticeUse()
                withdraw(from: $0)
            }
        } else {
            cancel(in: home)
        }
    }

    @inline(never)
    private final func cancel(in home: UnownedReference<RunLoop>) {
        home.with {
            $0.checkThread(of: self)
            withdraw(from: $0)
        }
    }

    @inline(__always)
    private final func move(to date: RunLoop.Instant, in loop: RunLoop) {
        loop.checkThread(of: self)
        let isLater = date >= self.date
        self.date = date
        let order = loop.timers.takeOrder()
        if isCalling {
            // The timeout is armed when its call has returned.
            queueOrder = order
        } else if isLater {
            loop.timers.postpone(self, order: order)
        } else {
            loop.timers.arm(self, at: date, order: order)
        }
        if loop.isWatched(.effects) { tellOfArming(in: loop) }
    }

    @inline(never)
    private final func tellOfArming(in loop: RunLoop) {
        loop.watchedCause(of: callee)
    }

    @inline(__always)
    fileprivate final func add(to loop: RunLoop, _ modes: RunLoop.Modes, at date: RunLoop.Instant) {
        // A loop that has ended knows no lane, and an empty set of modes has none.
        guard home == nil, hasHandler, !isCalling, loop.timers.knowsLane(for: modes) || findLane(for: modes, in: loop)
        else {
            loop.enrol(self, modes)
            rearm(at: date)
            return
        }
        self.date = date
        homeChanged(to: loop)
        loop.timers.add(self, at: date)
        if loop.isWatched(.effects) { tellOfArming(in: loop) }
    }

    @inline(never)
    private final func findLane(for modes: RunLoop.Modes, in loop: RunLoop) -> Bool {
        guard !loop.hasEnded, !modes.isEmpty else { return false }
        loop.timers.findLane(for: modes, common: loop.modeTable.common)
        return true
    }

    // MARK: As an item

    final override var kind: RunLoop.ItemKind { .timer }
    @inline(__always) final override var hasHandler: Bool { queueIndex != Self.indexOfInvalid }
    final override var dueDate: RunLoop.Instant? { fireDate }
    // As a timer that fires once.
    final override var callNumber: UInt64 { UInt64(UInt(bitPattern: ObjectIdentifier(self))) }
    final override var deadline: RunLoop.Instant { date }
    final override var earliest: RunLoop.Instant { date }
    final override var isKept: Bool { false }

    final override func dropHandler(_ body: () -> Void) {
        guard hasHandler else { return }
        if let home { home.with { withdraw(from: $0) } }
        queueIndex = Self.indexOfInvalid
        body()
    }

    final override func setMembership(_ membership: Membership, in loop: RunLoop) {
        guard !membership.isEmpty else {
            if home != nil { withdraw(from: loop) }
            return
        }
        if home != nil { return loop.timers.move(self, to: membership) }
        homeChanged(to: loop)
        loop.timers.register(self, membership, keeps: false)
    }

    @inline(__always)
    final override func withdraw(from loop: RunLoop) {
        assert(isIn(loop), "a timeout leaves a loop that it is not in")
        homeChanged(to: nil)
        loop.timers.unregister(self)
    }

    final override func deadlineCame(in loop: RunLoop) -> Bool {
        queueOrder = 0
        loop.emit(.called(kind, name: name, origin: origin, "fire \(name ?? "timeout") due \(date)"))
        let wasCalled = dispatch(in: loop) { timeoutExpired() }
        // The call may have removed the timeout, and added it to another loop.
        home?.with { home in
            assert(queuePlace == .resting, "a timeout was armed in its call")
            guard queueOrder != 0 else { return withdraw(from: home) }
            home.timers.arm(self, at: date, order: queueOrder)
        }
        return wasCalled
    }
}

extension RunLoop {
    /// Schedules a timeout, which expires once, not before `date`, in one of `modes`.
    ///
    /// Timeouts with equal dates expire in the order in which they were added or moved; a date that has passed expires
    /// in the next pass, never at once. A timeout that is scheduled already moves to the date, and joins the modes. The
    /// loop does not keep it: hold it as long as it is to expire. If `modes` is empty, nothing is scheduled. An invalid
    /// timeout is ignored and reported to ``trace``. On the loop's thread, O(log n).
    ///
    /// - Precondition: the timeout is in no other loop.
    public func add(_ timeout: Timeout, at date: Instant, forMode modes: Modes = .default) {
        checkThread()
        timeout.add(to: self, modes, at: date)
    }
}
