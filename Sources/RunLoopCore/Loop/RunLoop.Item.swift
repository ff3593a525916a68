extension RunLoop {
    /// Anything that can be scheduled in modes of a loop: a timer, a display link, an observer, or a source.
    ///
    /// An item belongs to one loop at a time and to that loop's thread, in any number of its modes, and is not
    /// `Sendable`. The loop keeps it from the moment it is added until it is invalidated or leaves its last mode; only a
    /// timeout belongs to its holder. The item keeps its handler until it is invalidated, and the end of its loop
    /// invalidates it. You cannot subclass this class: it has no public initializer.
    open class Item: CustomStringConvertible {
        /// Where it was made.
        public final let origin: Origin

        // Neither these nor the fields of the subclasses are checked for exclusive access: only the loop's thread gets
        // here, and no access is open while user code is called (decision 23).

        /// Set while it is scheduled. The loop clears it before it goes.
        @exclusivity(unchecked) final var home: UnownedReference<RunLoop>?
        @exclusivity(unchecked) final var extras: Extras?
        /// Whether its handler is on the stack.
        @exclusivity(unchecked) final var isCalling = false

        /// Properties that few items have.
        class Extras {
            final var name: String?
            final var invalidationHandler: (() -> Void)?
            final var link: RemoteLink<Item, RunLoop>?
        }

        init(origin: Origin) {
            self.origin = origin
        }

        /// A name for traces and reports.
        public final var name: String? {
            get { extras?.name }
            set {
                checkThread()
                madeExtras.name = newValue
                nameWasSet()
            }
        }

        /// Whether it can still be called. Once it has been invalidated this is `false` for good.
        public final var isValid: Bool { hasHandler && extras?.link?.isInvalidated != true }

        /// Called once when the item becomes invalid, before its handler and target are released: the counterpart of
        /// the cancel handler of a GCD source. On the loop's thread.
        public final var invalidationHandler: (() -> Void)? {
            get { extras?.invalidationHandler }
            set {
                checkThread()
                madeExtras.invalidationHandler = isValid ? newValue : nil
            }
        }

        /// Stops the item for good. It leaves all modes of its loop and is not called again, not even in a pass that
        /// has begun. Its handler and target are released, at the latest when a call that is under way returns.
        ///
        /// Harmless on an invalid item. Call it on the thread of the item's loop; other threads use a remote. O(1) on
        /// average, O(log n) at worst.
        public final func invalidate() {
            checkThread()
            dropHandler {
                home?.with { withdraw(from: $0) }
                guard let extras else { return }
                extras.link?.gate.close()
                let handler = extras.invalidationHandler.take()
                handler?()
            }
        }

        /// The item's kind, name and place of creation, for example `timer "poll" (Daemon/main.swift:12)`.
        public final var description: String { "\(kind)\(name.map { " \(quoted($0))" } ?? "") (\(origin))" }

        final var loop: RunLoop? { home?.object }

        /// Traps on another thread than its loop's, with a sentence that names it.
        @inline(__always)
        final func checkThread() {
            home?.with { $0.checkThread(of: self) }
        }

        @inline(__always)
        final func isIn(_ loop: RunLoop) -> Bool { home == UnownedReference(loop) }

        final var madeExtras: Extras {
            if extras == nil { extras = makeExtras() }
            return extras!
        }

        /// The state shared with the item's remotes.
        final var link: RemoteLink<Item, RunLoop> {
            let extras = madeExtras
            if extras.link == nil { extras.link = RemoteLink(self, loop?.mailbox) }
            return extras.link!
        }

        @inline(__always)
        final func homeChanged(to loop: RunLoop?) {
            home = loop.map { UnownedReference($0) }
            extras?.link?.loopChanged(to: loop?.mailbox)
        }

        /// Calls its handler unless another thread has stopped it, and notes that for those who watch the loop.
        @discardableResult
        @inline(__always)
        final func dispatch(in loop: RunLoop, _ handler: () -> Void) -> Bool {
            loop.dispatch(callee) { call(in: loop, handler) }
        }

        /// Calls its handler unless another thread has stopped it.
        @inline(__always)
        final func call(in loop: RunLoop?, _ handler: () -> Void) -> Bool {
            isCalling = true
            defer { isCalling = false }
            guard let link = extras?.link else {
                handler()
                return true
            }
            return link.gate.pass(on: loop?.threadNumber ?? CallGate.thisThread, handler)
        }

        @inline(__always)
        final var callee: Callee { Callee(kind, name, origin, number: callNumber) }

        /// Tells that a request was ignored, and why: to the trace of its loop, or else of the calling thread's.
        @inline(never)
        final func tellIgnored(_ what: String) {
            (home ?? RunLoop.usableReference)?.with { $0.trace?(.ignored("\(description) \(what)")) }
        }

        // MARK: Points for subclasses

        var kind: ItemKind { fatalError("every item has a kind") }
        var hasHandler: Bool { fatalError("an item knows its handler") }
        func nameWasSet() {}

        /// Forgets the handler, if it has one. Calls `body`, and releases the handler only then, when everything is in
        /// order: its deinits may do anything.
        func dropHandler(_ body: () -> Void) { fatalError("an item knows its handler") }

        /// The modes of its loop that it is in.
        var membership: Membership { fatalError("an item knows its modes") }

        /// Joins a loop, changes its modes, or leaves the loop when no mode is left.
        func setMembership(_ membership: Membership, in loop: RunLoop) { fatalError("an item knows its modes") }

        /// Leaves its loop for good.
        func withdraw(from loop: RunLoop) { fatalError("an item knows its modes") }

        /// The loop has ended, and every item of it knows.
        func loopEnded() { invalidate() }

        /// When it is due next, if it has a date; for reports.
        var dueDate: Instant? { nil }
        /// With which a flight finds the cause of its next call; 0 if there is none to be found.
        var callNumber: UInt64 { 0 }
        /// Further text about it for reports.
        var detail: String? { nil }
        /// Whether it keeps runs in its modes from finishing.
        var keepsAlive: Bool { true }
        /// Whether it is called in the next pass in one of its modes, regardless of the time.
        var isReady: Bool { false }

        func makeExtras() -> Extras { Extras() }
    }

    /// An item that waits for a deadline in its loop's timer queue. You cannot subclass this class: it has no public
    /// initializer.
    open class TimedItem: Item, TimerQueueNode {
        // Unchecked as in `Item`. These come first, in the gap that the fields of an item leave: what an item needs to
        // leave its queue is in 24 bytes, and mostly in one line of the cache.
        @exclusivity(unchecked) private final var queueFlags: UInt8 = 0
        @exclusivity(unchecked) final var queueLane: UInt16 = 0
        @exclusivity(unchecked) final var queueIndex: Int32 = -1
        @exclusivity(unchecked) final var queueOrder: UInt64 = 0
        @exclusivity(unchecked) final var laterOrder: UInt64 = 0

        @inline(__always) final var queuePlace: TimerQueuePlace {
            get { TimerQueuePlace(bits: queueFlags) }
            set { queueFlags = queueFlags & ~TimerQueuePlace.mask | newValue.rawValue }
        }
        @inline(__always) final var hasTolerance: Bool {
            get { queueFlags & 4 != 0 }
            set { queueFlags = queueFlags & ~4 | (newValue ? 4 : 0) }
        }
        @inline(__always) final var isRepeating: Bool {
            get { queueFlags & 8 != 0 }
            set { queueFlags = queueFlags & ~8 | (newValue ? 8 : 0) }
        }

        var deadline: Instant { fatalError("a timed item has a deadline") }
        var earliest: Instant { deadline }

        /// Its deadline has come; the queue has disarmed it. Something else keeps it during the call, which may take it
        /// out of the loop.
        ///
        /// - Returns: whether it called anybody.
        func deadlineCame(in loop: RunLoop) -> Bool { fatalError("a timed item is called at its deadline") }

        /// Whether the loop keeps it as long as it is scheduled.
        var isKept: Bool { true }

        final override var membership: Membership {
            home.map { $0.with { $0.timers.membership(of: self) } } ?? .none
        }

        override func withdraw(from loop: RunLoop) {
            homeChanged(to: nil)
            loop.timers.unregister(self)
            UnownedReference(self).release()
        }
    }

    /// An item that waits for something other than a deadline. You cannot subclass this class: it has no public
    /// initializer.
    open class UntimedItem: Item {
        // Unchecked as in `Item`.
        @exclusivity(unchecked) private final var modes = Membership.none
        /// Its place among those that were added to its loop; 0 if it never was.
        final var number = 0

        final override var membership: Membership { modes }

        override func setMembership(_ membership: Membership, in loop: RunLoop) {
            let old = modes
            modes = membership
            if old.isEmpty && !membership.isEmpty {
                homeChanged(to: loop)
                loop.keep(self)
            } else if membership.isEmpty {
                homeChanged(to: nil)
                loop.letGo(self)
            }
            if old.isEverywhere != membership.isEverywhere {
                loop.changeStates(of: old) { leave(&$0) }
                loop.changeStates(of: membership) { join(&$0) }
            } else if !membership.isEverywhere {
                loop.changeStates(of: old.modes.subtracting(membership.modes)) { leave(&$0) }
                loop.changeStates(of: membership.modes.subtracting(old.modes)) { join(&$0) }
            }
        }

        final override func withdraw(from loop: RunLoop) {
            setMembership(.none, in: loop)
        }

        /// Enters the item in the state of one of its modes.
        private final func join(_ state: inout ModeState) {
            if keepsAlive { state.keepAliveCount += 1 }
            guard !observedActivities.isEmpty else { return }
            let index = state.observers.firstIndex { $0.place > place } ?? state.observers.endIndex
            state.observers.insert(self, at: index)
            state.observedActivities.formUnion(observedActivities)
        }

        private final func leave(_ state: inout ModeState) {
            if keepsAlive { state.keepAliveCount -= 1 }
            guard !observedActivities.isEmpty else { return }
            state.observers.removeAll { $0 === self }
            state.observedActivities = state.observers.reduce(into: []) { $0.formUnion($1.observedActivities) }
        }

        // MARK: Points for subclasses

        /// The points of a run at which it is called.
        var observedActivities: Activity { [] }
        /// Its place among the items that are called at the same point: smaller numbers are called earlier.
        var place: Int { 0 }
        func observe(_ activity: Activity, in loop: RunLoop) {}
    }
}
