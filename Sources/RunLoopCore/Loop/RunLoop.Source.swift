extension RunLoop {
    /// An item that an event outside of the loop makes ready, for example a ``CustomSource`` or a ``DescriptorSource``.
    /// Not for subclassing: it has no public initializer.
    open class Source: UntimedItem, SignalQueueNode, ParkedListNode {
        /// The source's place among ready sources: smaller numbers are served earlier, and equal ones in the order in
        /// which they became ready.
        public final let order: Int

        /// The limit on calls of the source; unlimited if `nil`, the default. Events that make the source ready
        /// meanwhile wait. A new limit applies at once, also to calls that have been made.
        public final var rateLimit: RateLimit? {
            get { window?.limit }
            set {
                checkThread()
                window = newValue.map { RateWindow($0, after: window) }
                guard let alarm, let loop else { return }
                if let end = window?.end(at: loop.now) { return alarm.set(to: end, in: loop, membership) }
                alarm.setMembership(.none, in: loop)
                mayBeCalledAgain(in: loop)
            }
        }
        private final var window: RateWindow?
        /// The alarm that ends the interval of a limit.
        private final var alarm: Alarm?

        /// A Boolean value that indicates whether the source keeps runs in its modes from finishing. The default is
        /// `true`. For a source that only observes the loop, set this to `false` before you add it; libuv calls that
        /// `uv_unref`.
        public final var keepsModesAlive = true {
            willSet { require(home == nil, "keepsModesAlive is set before the source is added to a loop") }
        }
        final override var keepsAlive: Bool { keepsModesAlive }

        /// The number of the pending signal; 0 if the source was not signalled.
        final var signalNumber: UInt64 = 0
        /// The driver's token for the source while its descriptor is watched or parked.
        final var token: SourceToken?
        final var parkedIndex: Int?

        /// The number of the source's name in the log that used it last, and that log's number; 0 if the name was set
        /// since.
        private final var knownName: (number: UInt32, log: UInt32) = (0, 0)

        init(order: Int, origin: Origin) {
            self.order = order
            super.init(origin: origin)
        }

        final override func nameWasSet() { knownName.log = 0 }

        @inline(__always)
        final func flightName(in log: FlightLog) -> UInt32 {
            if knownName.log != log.number { knownName = (log.name(of: callee), log.number) }
            return knownName.number
        }

        /// Indicates whether the source is in a mode of a loop. On the loop's thread.
        package final var isScheduled: Bool { home != nil }

        // MARK: Points for subclasses

        /// Calls the handler, unless a rate limit holds it back.
        ///
        /// - Returns: whether the handler was called.
        func serve(_ found: DescriptorEvents, in loop: RunLoop) -> Bool { fatalError("a source can be served") }

        /// Has the descriptor watched again, if the source can be called.
        func unpark(in loop: RunLoop) {}

        /// Notes that the obstacle to calling the source has gone.
        func mayBeCalledAgain(in loop: RunLoop) {}

        // MARK: The rate limit

        /// Counts a call if the rate limit allows it. If not, the source is checked again when it may be called.
        @inline(__always)
        final func passesLimit(in loop: RunLoop) -> Bool { window == nil || takeCall(in: loop) }

        private final func takeCall(in loop: RunLoop) -> Bool {
            guard let end = window!.take(at: loop.now) else { return true }
            assert(isIn(loop), "a source is held back in a loop that it is not in")
            if alarm == nil {
                alarm = Alarm(origin: origin) { [unowned self, unowned loop] in mayBeCalledAgain(in: loop) }
            }
            alarm!.set(to: end, in: loop, membership)
            return false
        }

        /// Returns whether the rate limit keeps the source from being called now.
        final func isHeldBack(in loop: RunLoop) -> Bool { window?.end(at: loop.now) != nil }

        override func setMembership(_ membership: Membership, in loop: RunLoop) {
            super.setMembership(membership, in: loop)
            if let alarm, membership.isEmpty || alarm.isIn(loop) { alarm.setMembership(membership, in: loop) }
        }
    }

    /// A deadline of the loop's own, at which it checks something again. An alarm keeps no mode alive.
    final class Alarm: TimedItem {
        private var date = Instant.distantFuture
        private let action: () -> Void

        init(origin: Origin, _ action: @escaping () -> Void) {
            self.action = action
            super.init(origin: origin)
        }

        func set(to date: Instant, in loop: RunLoop, _ membership: Membership) {
            self.date = date
            setMembership(membership, in: loop)
            assert(isIn(loop), "an alarm is set in a loop that it is not in")
            loop.timers.arm(self, at: date, order: loop.timers.takeOrder())
        }

        override var deadline: Instant { date }
        override var kind: ItemKind { .timer }
        override var hasHandler: Bool { false }
        override func dropHandler(_ body: () -> Void) {}

        override func setMembership(_ membership: Membership, in loop: RunLoop) {
            if membership.isEmpty {
                if isIn(loop) { withdraw(from: loop) }
            } else if isIn(loop) {
                loop.timers.move(self, to: membership)
            } else {
                homeChanged(to: loop)
                loop.timers.register(self, membership)
            }
        }

        override func deadlineCame(in loop: RunLoop) -> Bool {
            withdraw(from: loop)
            action()
            return false
        }
    }
}
