internal import CPrograms
internal import CShims
internal import Glibc
internal import RunLoopCore

/// A set of descriptors whose events a program awaits, as `epoll` makes it.
final class EventSet: OpenDescription {
    private final class Entry {
        let descriptor: Int32
        let target: OpenDescription
        var events: UInt32
        var data: UInt64
        /// `true` if an event may not have been reported yet.
        var isNoted = true
        /// `false` after the event of an entry that reports one only.
        var isArmed = true

        init(_ descriptor: Int32, _ target: OpenDescription, _ events: UInt32, _ data: UInt64) {
            (self.descriptor, self.target, self.events, self.data) = (descriptor, target, events, data)
        }

        private func has(_ flag: UInt32) -> Bool { events & flag != 0 }
        var isOnEdge: Bool { has(UInt32(truncatingIfNeeded: rlk_set_on_edge)) }
        var isOneShot: Bool { has(UInt32(rlk_set_once)) }

        /// The events to report now.
        var present: UInt32 {
            guard isArmed, isNoted, !target.isClosed else { return 0 }
            let always = UInt32(rlk_set_failure | rlk_set_hang_up)
            return UInt32(UInt16(bitPattern: target.pollEvents)) & (events | always)
        }
    }

    /// The entries, in the order in which they may report events.
    private var entries: [Entry] = []

    override var readiness: DescriptorEvents? { entries.contains { $0.present != 0 } ? .readable : [] }

    override func close() {
        for entry in entries { entry.target.removeObserver(entry) }
        entries.removeAll()
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
        let index = entries.firstIndex { $0.descriptor == descriptor && $0.target === target }
        switch (operation, index) {
        case (rlk_set_add, nil):
            // A regular file is always ready, so nobody may wait for it.
            guard target.readiness != nil else { return EPERM }
            let entry = Entry(descriptor, target, events, data)
            entries.append(entry)
            // A target may outlive the set, which goes without a close when its machine stops.
            target.addObserver(entry) { [weak self, weak entry] in
                guard let self, let entry else { return }
                entry.isNoted = true
                if entry.present != 0 { tell() }
            }
            if entry.present != 0 { tell() }
        case (rlk_set_add, .some): return EEXIST
        case (rlk_set_modify, let index?):
            let entry = entries[index]
            (entry.events, entry.data, entry.isArmed, entry.isNoted) = (events, data, true, true)
            if entry.present != 0 { tell() }
        case (rlk_set_remove, let index?):
            let entry = entries.remove(at: index)
            target.removeObserver(entry)
        case (rlk_set_modify, nil), (rlk_set_remove, nil): return ENOENT
        default: return EINVAL
        }
        return 0
    }

    /// Forgets descriptors that were closed, as the system does.
    private func removeClosed() { entries.removeAll { $0.target.isClosed } }

    /// Takes at most so many events.
    func take(_ most: Int) -> [rlk_set_event] {
        removeClosed()
        var taken: [rlk_set_event] = []
        var reported: [Entry] = []
        for entry in entries where taken.count < most {
            let events = entry.present
            guard events != 0 else { continue }
            taken.append(rlk_set_event(events: events, unused: 0, data: entry.data))
            reported.append(entry)
            if entry.isOneShot { entry.isArmed = false }
            if entry.isOnEdge { entry.isNoted = false }
        }
        // Others come first next time.
        entries.removeAll { entry in reported.contains { $0 === entry } }
        entries += reported
        return taken
    }
}
