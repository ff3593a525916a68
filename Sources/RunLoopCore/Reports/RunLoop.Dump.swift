extension RunLoop {
    /// A snapshot of a loop: its scheduled items with their modes and deadlines, and the reasons why the loop keeps
    /// running.
    ///
    /// A dump is a copy and `Sendable`: it does not change when the loop does. Print it as text, or use ``json``.
    public struct Dump: Sendable, Hashable {
        /// The name of the loop's ``LoopThread``; `nil` on other threads.
        public let name: String?
        /// The time on the loop's clock when the dump was made.
        public let now: Instant
        /// A Boolean value that indicates whether the loop's time is virtual.
        public let isVirtual: Bool
        /// The modes of the runs under way, the innermost last.
        public let runs: [Mode]
        /// The modes that count as common.
        public let commonModes: [Mode]
        /// The scheduled items: first the ones with a deadline, in order, then the others.
        public let items: [Item]
        /// Counters of the loop's activity so far.
        public let statistics: Statistics

        /// An item that is scheduled in a loop.
        public struct Item: Sendable, Hashable {
            /// The kind of the item.
            public let kind: ItemKind
            /// The item's name, if it has one.
            public let name: String?
            /// The file and line that made the item.
            public let origin: Origin
            /// The modes that contain the item now.
            public let modes: [Mode]
            /// A Boolean value that indicates whether the item was added to the common modes, so that it joins any mode
            /// that becomes common.
            public let isCommon: Bool
            /// A Boolean value that indicates whether the item is served in any mode of the loop, like timer sources.
            public let isEverywhere: Bool
            /// The date on which the item is due next, if it has one.
            public let deadline: Instant?
            /// Further details in words: that the item is paused, or how often it repeats.
            public let detail: String?

            /// Returns whether the item takes part in runs of `mode`.
            public func isIn(_ mode: Mode) -> Bool { isEverywhere || modes.contains(mode) }

            /// A Boolean value that indicates whether the item keeps runs in its modes from finishing. Observers do
            /// not, nor do items that only observe the loop, such as the signal that dumps it.
            public let keepsAlive: Bool
            /// Indicates whether the item is called in the next pass in one of its modes, regardless of the time.
            @_spi(Ports) public let isReady: Bool
            /// The state of a task; `nil` for other items.
            @_spi(Ports) public let task: TaskState?
            /// The descriptor of a descriptor source.
            @_spi(Ports) public let descriptor: Int32?
        }

        /// Returns the items that keep a run in `mode` from finishing.
        public func keepingAlive(_ mode: Mode) -> [Item] {
            items.filter { $0.keepsAlive && $0.isIn(mode) }
        }

        /// Returns the date on which an item in `mode` is due next.
        public func nextDeadline(in mode: Mode) -> Instant? {
            items.filter { $0.isIn(mode) }.compactMap(\.deadline).min()
        }

        /// The modes that have items, that run, or that are common, in the order in which the process first named them.
        public var modes: [Mode] {
            Set(items.flatMap(\.modes) + runs + commonModes).ordered { $0.id < $1.id }
        }
    }

    /// Returns a snapshot of the loop. Call it on the loop's thread; from another thread, call it in a block that the
    /// loop's ``remote`` performs. O(n log n) in the number of items.
    ///
    /// Within a handler, an item that is being called still has the date of that call; only a timer source has its next
    /// one. The blocks of the present step are gone. Blocks that other threads have posted appear once the loop has
    /// collected them.
    public func dump() -> Dump {
        checkThread()
        return dumpAtRest()
    }

    /// Returns a snapshot, on a thread that knows that the loop's own is at rest.
    @_spi(Ports) public func dumpAtRest() -> Dump {
        var items = timers.items().compactMap { item -> Dump.Item? in
            if let call = item.call { return Dump.Item(call.pointee, timers.membership(of: item)) }
            // Without the loop's own alarms.
            return item.node.object is Alarm ? nil : Dump.Item(item.node.object)
        }
        let others = untimed.all
        let tasks = taskStates(of: others)
        items += others.map { Dump.Item($0, tasks[ObjectIdentifier($0)]) }.ordered { $0.kind.rank < $1.kind.rank }
        items += blocks.map { Dump.Item($0, modeTable.common) }
        return Dump(
            name: name, now: now, isVirtual: isVirtual,
            runs: (runs.outer + [runs.innermost].compactMap(\.self)).map(\.mode), commonModes: modeTable.common.all,
            items: items, statistics: statistics)
    }
}

extension RunLoop.Dump.Item {
    private init(
        _ kind: RunLoop.ItemKind, _ name: String?, _ origin: RunLoop.Origin, _ membership: Membership,
        keepsAlive: Bool = true, isReady: Bool = false, due: RunLoop.Instant? = nil, detail: String? = nil,
        task: RunLoop.Dump.TaskState? = nil, descriptor: Int32? = nil
    ) {
        (self.kind, self.name, self.origin, self.detail) = (kind, name, origin, detail)
        modes = membership.modes.all
        isCommon = membership.isCommon
        isEverywhere = membership.isEverywhere
        (self.keepsAlive, self.isReady) = (keepsAlive, isReady)
        (self.task, self.descriptor) = (task, descriptor)
        deadline = due == .distantFuture ? nil : due
    }

    fileprivate init(_ item: RunLoop.Item, _ task: RunLoop.Dump.TaskState? = nil) {
        let detail = [item.detail, task?.activity].compactMap(\.self)
        self.init(
            item.kind, item.name, item.origin, item.membership, keepsAlive: item.keepsAlive, isReady: item.isReady,
            due: item.dueDate, detail: detail.isEmpty ? nil : detail.joined(separator: ", "), task: task,
            descriptor: (item as? RunLoop.WatchedSource)?.descriptor)
    }

    fileprivate init(_ call: CallSlot, _ membership: Membership) {
        self.init(call.label.kind, call.label.name, call.origin, membership, due: call.date)
    }

    fileprivate init(_ block: Block<RunLoop>, _ commonModes: ModeSet) {
        self.init(.block, nil, block.origin, Membership.none.joining(block.modes, common: commonModes), isReady: true)
    }
}

extension RunLoop.ItemKind {
    /// The place of items without a deadline in a dump.
    fileprivate var rank: Int {
        switch self {
        case .observer: 2
        case .descriptor: 1
        default: 0
        }
    }
}
