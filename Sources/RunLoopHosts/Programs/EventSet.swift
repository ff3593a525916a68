internal import CPrograms
internal import CShims
internal import Glibc
internal import RunLoopCore

/// A set of descriptors whose events a program awaits, as `epoll` makes it.
final class EventSet: OpenDescription {
    private final class Entry {
        let descriptor: Int32
        let target: OpenDescription
        private(set) var events: UInt32 = 0
        private(set) var data: UInt64 = 0
        /// `true` while the entry is one of those that may have an event.
        var isNoted = false
        /// `false` after the event of an entry that reports one only.
        var isArmed = true

        init(_ descriptor: Int32, _ target: OpenDescription) {
            (self.descriptor, self.target) = (descriptor, target)
        }

        func arm(_ events: UInt32, _ data: UInt64) {
            (self.events, self.data) = (events | UInt32(rlk_set_failure | rlk_set_hang_up), data)
            isArmed = true
        }

        private func has(_ flag: UInt32) -> Bool { events & flag != 0 }
        var isOnEdge: Bool { has(UInt32(truncatingIfNeeded: rlk_set_on_edge)) }
        var isOneShot: Bool { has(UInt32(rlk_set_once)) }
        var isExclusive: Bool { has(UInt32(rlk_set_exclusive)) }

        /// Returns `true` if the entry awaits one of some events.
        func awaits(_ some: Int16) -> Bool { isArmed && has(UInt32(UInt16(bitPattern: some))) }

        /// `true` if there is an event to report.
        var isReady: Bool {
            // The entries of another set are looked at without changing it.
            (target as? EventSet).map { awaits(Int16(POLLIN)) && $0.readiness == .readable } ?? (present != 0)
        }

        /// The events to report now.
        var present: UInt32 {
            isArmed && !target.isClosed ? UInt32(UInt16(bitPattern: target.pollEvents)) & events : 0
        }
    }

    private var entries: [Entry] = []
    /// The entries that may have an event, in the order in which they report it.
    private var noted: [Entry] = []

    override var readiness: DescriptorEvents? { noted.contains { $0.isReady } ? .readable : [] }

    /// As on Linux, a look from outside forgets the entries before the first event.
    override var pollEvents: Int16 {
        while let first = noted.first, first.present == 0 {
            first.isNoted = false
            noted.removeFirst()
        }
        return noted.isEmpty ? 0 : Int16(POLLIN)
    }

    override func close() {
        for entry in entries { entry.target.removeObserver(entry) }
        entries.removeAll()
        noted.removeAll()
    }

    // MARK: Entries

    /// Adds, changes or removes a descriptor.
    ///
    /// - Returns: an error number, or 0.
    func change(
        _ operation: rlk_set_operation, _ descriptor: Int32, _ target: OpenDescription, _ events: UInt32, _ data: UInt64
    ) -> Int32 {
        guard target !== self else { return EINVAL }
        removeClosed()
        let entry = entries.first { $0.descriptor == descriptor && $0.target === target }
        if operation != rlk_set_remove, events & UInt32(rlk_set_exclusive) != 0 {
            let others = ~UInt32(truncatingIfNeeded: rlk_set_beside_exclusive)
            if operation == rlk_set_modify || target is EventSet || events & others != 0 { return EINVAL }
        }
        switch operation {
        case rlk_set_add:
            if let set = target as? EventSet, set.reaches(self) { return ELOOP }
            guard entry == nil else { return EEXIST }
            add(Entry(descriptor, target), events, data)
        case rlk_set_modify:
            guard let entry else { return ENOENT }
            guard !entry.isExclusive else { return EINVAL }
            entry.arm(events, data)
            if entry.present != 0, !entry.isNoted { note(entry) }
        case rlk_set_remove:
            guard let entry else { return ENOENT }
            target.removeObserver(entry)
            entries.removeAll { $0 === entry }
            noted.removeAll { $0 === entry }
        default: return EINVAL
        }
        return 0
    }

    private func add(_ entry: Entry, _ events: UInt32, _ data: UInt64) {
        entry.arm(events, data)
        entries.append(entry)
        // A target may outlive the set, which goes without a close when its machine stops.
        entry.target.addObserver(entry, isFirst: !entry.isExclusive) { [weak self, weak entry] events in
            if let self, let entry, entry.awaits(events) { note(entry) }
        }
        if entry.present != 0 { note(entry) }
    }

    private func note(_ entry: Entry) {
        if !entry.isNoted { noted.append(entry) }
        entry.isNoted = true
        tell(Int16(POLLIN))
    }

    /// Returns `true` if the set has another one in it, or in one that it has.
    private func reaches(_ other: EventSet) -> Bool {
        entries.contains { entry in (entry.target as? EventSet).map { $0 === other || $0.reaches(other) } ?? false }
    }

    /// Forgets descriptors that were closed, as the system does.
    private func removeClosed() {
        entries.removeAll { $0.target.isClosed }
        noted.removeAll { $0.target.isClosed }
    }

    /// Takes at most so many events.
    func take(_ most: Int) -> [rlk_set_event] {
        removeClosed()
        var taken: [rlk_set_event] = []
        var levels: [Entry] = []
        while taken.count < most, !noted.isEmpty {
            let entry = noted.removeFirst()
            entry.isNoted = false
            let events = entry.present
            guard events != 0 else { continue }
            taken.append(rlk_set_event(events: events, unused: 0, data: entry.data))
            if entry.isOneShot {
                entry.isArmed = false
            } else if !entry.isOnEdge {
                entry.isNoted = true
                levels.append(entry)
            }
        }
        // Others come first next time.
        noted += levels
        return taken
    }
}
