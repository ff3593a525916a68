extension RunLoop {
    /// What kind of thing a loop holds, or calls.
    public enum ItemKind: String, Sendable, Hashable, CaseIterable, CustomStringConvertible {
        case timer
        case timerSource = "timer source"
        case displayLink = "display link"
        case source
        case descriptor
        case observer
        case block

        public var description: String { rawValue }
    }

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

            /// Whether a run in one of its modes goes on for it (R9–R11): not for observers, nor for what only looks
            /// at the loop, as the signal of a dump does.
            public var keepsAlive: Bool { kind != .observer && !(kind == .descriptor && isEverywhere) }
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
        var items = timers.clients().map { $0.client.describe($0.membership) }
        items += allCustomSources().map { $0.describe() }
        items += descriptors.all.map { $0.describe() }
        items += allObservers().map { $0.describe() }
        items += blocks.map { $0.describe(commonModes: commonModes) }
        return Dump(
            name: name, now: now, isVirtual: isVirtual,
            runs: outerRuns.map(\.mode) + (currentMode.map { [$0] } ?? []), commonModes: commonModes.all,
            items: items, statistics: statistics)
    }
}

extension RunLoop.Dump.Item {
    init(
        kind: RunLoop.ItemKind, name: String?, origin: RunLoop.Origin, membership: Membership,
        deadline: RunLoop.Instant? = nil, detail: String? = nil
    ) {
        self.kind = kind
        self.name = name
        self.origin = origin
        modes = membership.modes.all
        isCommon = membership.isCommon
        isEverywhere = membership.isEverywhere
        self.deadline = deadline == .distantFuture ? nil : deadline
        self.detail = detail
    }
}

extension CustomSource {
    func describe() -> RunLoop.Dump.Item {
        RunLoop.Dump.Item(
            kind: .source, name: name, origin: origin, membership: membership, detail: isSignalled ? "signalled" : nil)
    }
}

extension DescriptorSource {
    func describe() -> RunLoop.Dump.Item {
        let words = [
            "descriptor \(fileDescriptor)", events.contains(.readable) ? "readable" : nil,
            events.contains(.writable) ? "writable" : nil, isParked ? "ready and parked" : nil,
        ]
        return RunLoop.Dump.Item(
            kind: .descriptor, name: name, origin: origin, membership: membership,
            detail: words.compactMap(\.self).joined(separator: ", "))
    }
}

extension Observer {
    func describe() -> RunLoop.Dump.Item {
        RunLoop.Dump.Item(kind: .observer, name: name, origin: origin, membership: membership)
    }
}

extension RunLoop.Block {
    func describe(commonModes: ModeSet) -> RunLoop.Dump.Item {
        RunLoop.Dump.Item(
            kind: .block, name: nil, origin: origin, membership: Membership().joining(modes, common: commonModes))
    }
}
