extension RunLoop {
    /// Anything that can be scheduled in modes of a loop: a timer, a display link, an observer, or a source.
    ///
    /// An item belongs to one loop at a time and to that loop's thread, in any number of its modes, and is not
    /// `Sendable`. The loop keeps it from the moment it is added until it is invalidated or leaves its last mode; only
    /// a timeout belongs to its holder. The item keeps its handler until it is invalidated, and the end of its loop
    /// invalidates it. Not for subclassing: it has no public initializer.
    open class Item: CustomStringConvertible {
        /// The file and line that made the item.
        public final let origin: Origin

        // Neither these nor the fields of timers are checked for exclusive access: only the loop's thread accesses
        // them, and no access is open while user code is called (decision 23).

        /// The loop in which the item is scheduled. A loop clears it before its deinit.
        @exclusivity(unchecked) final var home: UnownedReference<RunLoop>?
        @exclusivity(unchecked) final var extras: Extras?
        /// Set while the item's handler is on the stack.
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

        /// The item's name in traces and reports.
        public final var name: String? {
            get { extras?.name }
            set {
                checkThread()
                madeExtras.name = newValue
                nameWasSet()
            }
        }

        /// A Boolean value that indicates whether the item can still be called; `false` for good once it has been
        /// invalidated.
        public final var isValid: Bool { hasHandler && extras?.link?.isInvalidated != true }

        /// A closure to call once when the item becomes invalid, before its handler and target are released: the
        /// counterpart of the cancel handler of a GCD source. On the loop's thread.
        public final var invalidationHandler: (() -> Void)? {
            get { extras?.invalidationHandler }
            set {
                checkThread()
                madeExtras.invalidationHandler = isValid ? newValue : nil
            }
        }

        /// Stops the item for good. The item leaves all modes of its loop and is not called again, not even in a pass
        /// that has begun. Its handler and target are released, at the latest when a call under way returns.
        ///
        /// Harmless on an invalid item. Call this method on the thread of the item's loop; other threads use a remote.
        /// O(1) on average, O(log n) at worst.
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
        public final var description: String { kind.title(name, origin) }

        final var loop: RunLoop? { home?.object }

        /// Traps on another thread than the loop's, with a sentence that names the item.
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

        /// Calls the handler if no other thread has stopped the item, and reports the call if the loop is watched.
        @discardableResult
        @inline(__always)
        final func dispatch(in loop: RunLoop, _ handler: () -> Void) -> Bool {
            loop.dispatch(callee) { call(in: loop, handler) }
        }

        /// Calls the handler if no other thread has stopped the item.
        @inline(__always)
        final func call(in loop: RunLoop?, _ handler: () -> Void) -> Bool {
            assert(!isCalling, "an item is called within its own call")
            isCalling = true
            defer { isCalling = false }
            guard let link = extras?.link else {
                handler()
                return true
            }
            return link.gate.pass(on: loop?.owner.number ?? CallGate.thisThread, handler)
        }

        @inline(__always)
        final var callee: Callee { Callee(kind, name, origin, number: callNumber) }

        /// Reports an ignored request, and the reason, to the trace of the item's loop, or else of the calling
        /// thread's.
        @inline(never)
        final func tellIgnored(_ what: String) {
            (home ?? RunLoop.usableReference)?.with { $0.emit(.ignored("\(description) \(what)")) }
        }

        // MARK: Points for subclasses

        var kind: ItemKind { fatalError("every item has a kind") }
        var hasHandler: Bool { fatalError("an item knows its handler") }
        func nameWasSet() {}

        /// Clears the handler, if there is one. Calls `body`, and releases the handler only then, when everything is in
        /// order: its deinits may do anything.
        func dropHandler(_ body: () -> Void) { fatalError("an item knows its handler") }

        /// The modes of the loop that contain the item.
        var membership: Membership { fatalError("an item knows its modes") }

        /// Joins a loop, changes the item's modes, or leaves the loop when no mode is left.
        func setMembership(_ membership: Membership, in loop: RunLoop) { fatalError("an item knows its modes") }

        /// Leaves the loop for good.
        func withdraw(from loop: RunLoop) { fatalError("an item knows its modes") }

        /// Called after the loop has ended and all its items have left it.
        func loopEnded() { invalidate() }

        /// The date on which the item is due next, if it has one; for reports.
        var dueDate: Instant? { nil }
        /// The number by which a flight finds the cause of the item's next call; 0 if there is none.
        var callNumber: UInt64 { 0 }
        /// Further text about the item for reports.
        var detail: String? { nil }
        /// Indicates whether the item keeps runs in its modes from finishing.
        var keepsAlive: Bool { true }
        /// Indicates whether the item is called in the next pass in one of its modes, regardless of the time.
        var isReady: Bool { false }

        func makeExtras() -> Extras { Extras() }
    }

    /// An item that waits for a deadline in its loop's timer queue. Not for subclassing: it has no public initializer.
    open class TimedItem: Item, TimerQueueNode {
        // Unchecked as in `Item`. Declared first, in the gap that the fields of an item leave: leaving a queue uses 24
        // bytes, mostly in one line of the cache.
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

        /// Calls the handler at the deadline; the queue has disarmed the item. The caller keeps it during the call,
        /// which may remove it from the loop.
        ///
        /// - Returns: whether a handler was called.
        func deadlineCame(in loop: RunLoop) -> Bool { fatalError("a timed item is called at its deadline") }

        /// Indicates whether the loop keeps the item as long as it is scheduled.
        var isKept: Bool { true }

        final override var membership: Membership {
            home.map { $0.with { $0.timers.membership(of: self) } } ?? .none
        }

        override func withdraw(from loop: RunLoop) {
            assert(isIn(loop), "an item leaves a loop that it is not in")
            homeChanged(to: nil)
            loop.timers.unregister(self)
            UnownedReference(self).release()
        }
    }

    /// An item that waits for something other than a deadline. Not for subclassing: it has no public initializer.
    open class UntimedItem: Item {
        // Unchecked as in `Item`.
        @exclusivity(unchecked) private final var modes = Membership.none
        /// The item's place among the items added to its loop; 0 if it was never added.
        final var number = 0

        final override var membership: Membership { modes }

        override func setMembership(_ membership: Membership, in loop: RunLoop) {
            assert(home == nil || isIn(loop), "the modes of an item are those of another loop")
            let old = modes
            modes = membership
            if old.isEmpty && !membership.isEmpty {
                homeChanged(to: loop)
                loop.untimed.keep(self)
            } else if membership.isEmpty {
                homeChanged(to: nil)
                loop.untimed.letGo(self)
            }
            if old.isEverywhere != membership.isEverywhere {
                loop.modeTable.changeStates(of: old) { leave(&$0) }
                loop.modeTable.changeStates(of: membership) { join(&$0) }
            } else if !membership.isEverywhere {
                loop.modeTable.changeStates(of: old.modes.subtracting(membership.modes)) { leave(&$0) }
                loop.modeTable.changeStates(of: membership.modes.subtracting(old.modes)) { join(&$0) }
            }
        }

        final override func withdraw(from loop: RunLoop) {
            setMembership(.none, in: loop)
        }

        /// Adds the item to the state of one of its modes.
        private final func join(_ state: inout ModeState) {
            assert(!state.observers.contains { $0 === self }, "an observer joins a mode twice")
            if keepsAlive { state.keepAliveCount += 1 }
            guard !observedActivities.isEmpty else { return }
            let index = state.observers.firstIndex { $0.place > place } ?? state.observers.endIndex
            state.observers.insert(self, at: index)
            state.observedActivities.formUnion(observedActivities)
        }

        private final func leave(_ state: inout ModeState) {
            assert(!keepsAlive || state.keepAliveCount > 0, "a mode has lost count of what keeps it alive")
            assert(
                observedActivities.isEmpty || state.observers.contains { $0 === self },
                "an observer leaves a mode that it is not in")
            if keepsAlive { state.keepAliveCount -= 1 }
            guard !observedActivities.isEmpty else { return }
            state.observers.removeAll { $0 === self }
            state.observedActivities = state.observers.reduce(into: []) { $0.formUnion($1.observedActivities) }
        }

        // MARK: Points for subclasses

        /// The points of a run at which the item is called.
        var observedActivities: Activity { [] }
        /// The item's place among the items that are called at the same point: smaller numbers are called earlier.
        var place: Int { 0 }
        func observe(_ activity: Activity, in loop: RunLoop) {}
    }
}
