extension RunLoop {
    /// What a loop holds and does at one moment: what waits, in which modes, until when, and what keeps it alive.
    ///
    /// It is a copy: it stays as it is while the loop goes on, and may be sent anywhere. As text, or as ``json``.
    public struct Dump: Sendable, Hashable {
        /// The name of the loop's thread, if it is a ``LoopThread``'s.
        public let name: String?
        /// The time on the loop's clock when the dump was made.
        public let now: Instant
        /// Whether that is virtual time.
        public let isVirtual: Bool
        /// The modes of the runs under way, the innermost last.
        public let runs: [Mode]
        /// The modes that count as common.
        public let commonModes: [Mode]
        /// Everything that is scheduled: what has a deadline first, the next one first; then the rest.
        public let items: [Item]
        /// What the loop has done so far.
        public let statistics: Statistics

        /// Something that is scheduled in a loop.
        public struct Item: Sendable, Hashable {
            /// What it is.
            public let kind: ItemKind
            /// Its name, if it was given one.
            public let name: String?
            /// Where it was made.
            public let origin: Origin
            /// The modes that it is in now.
            public let modes: [Mode]
            /// Whether it is also in whatever else becomes a common mode.
            public let isCommon: Bool
            /// Whether it is served in whatever mode the loop runs, as timer sources are.
            public let isEverywhere: Bool
            /// When it is due next, if it has a date.
            public let deadline: Instant?
            /// What else there is to say, in words: that it is paused, how often it repeats.
            public let detail: String?

            /// Whether it takes part in runs of that mode.
            public func isIn(_ mode: Mode) -> Bool { isEverywhere || modes.contains(mode) }

            /// Whether a run in one of its modes goes on for it: not for observers, nor for what only looks at the loop,
            /// as the signal of a dump does.
            public let keepsAlive: Bool
        }

        /// What keeps a run in `mode` from finishing (R9–R11).
        public func keepingAlive(_ mode: Mode) -> [Item] {
            items.filter { $0.keepsAlive && $0.isIn(mode) }
        }

        /// When something in `mode` is due next.
        public func nextDeadline(in mode: Mode) -> Instant? {
            items.filter { $0.isIn(mode) }.compactMap(\.deadline).min()
        }

        /// The modes that anything is in, that run, or that are common; in the order in which the process named them.
        public var modes: [Mode] {
            Set(items.flatMap(\.modes) + runs + commonModes).sorted { $0.id < $1.id }
        }
    }

    /// What the loop holds and does now. On the loop's thread; from another, within a block that its ``remote``
    /// performs. O(n log n) in what is scheduled.
    ///
    /// From within a handler: what is being called still has the date that it is called for, except a timer source,
    /// which has its next; of the blocks of the step under way none is there any more. What other threads have posted
    /// is there once the loop has looked.
    public func dump() -> Dump {
        checkThread()
        var items = timers.nodes().filter { !($0 is Alarm) }.map { Dump.Item($0) }
        items += allUntimedItems().map { Dump.Item($0) }.sorted { $0.kind.rank < $1.kind.rank }
        items += blocks.map { Dump.Item($0, commonModes) }
        return Dump(
            name: name, now: now, isVirtual: isVirtual,
            runs: outerRuns.map(\.mode) + (currentMode.map { [$0] } ?? []), commonModes: commonModes.all,
            items: items, statistics: statistics)
    }
}

extension RunLoop.Dump.Item {
    fileprivate init(_ item: RunLoop.Item) {
        kind = item.kind
        name = item.name
        origin = item.origin
        let membership = item.membership
        modes = membership.modes.all
        isCommon = membership.isCommon
        isEverywhere = membership.isEverywhere
        keepsAlive = item.keepsAlive
        deadline = item.dueDate == .distantFuture ? nil : item.dueDate
        detail = item.detail
    }

    fileprivate init(_ block: Block<RunLoop>, _ commonModes: ModeSet) {
        kind = .block
        name = nil
        origin = block.origin
        let membership = Membership.none.joining(block.modes, common: commonModes)
        modes = membership.modes.all
        isCommon = membership.isCommon
        isEverywhere = membership.isEverywhere
        keepsAlive = true
        deadline = nil
        detail = nil
    }
}

extension RunLoop.ItemKind {
    /// The place of those without a deadline in a dump.
    fileprivate var rank: Int {
        switch self {
        case .observer: 2
        case .descriptor: 1
        default: 0
        }
    }
}
