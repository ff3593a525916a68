/// Names a source to the driver. The version tells the present tenant of a slot from earlier ones.
package struct SourceToken: Hashable, Sendable {
    package let slot: UInt32
    package let version: UInt32

    package init(slot: UInt32, version: UInt32) {
        self.slot = slot
        self.version = version
    }
}

/// Descriptors that were found ready and have not been served, oldest first. It belongs to the loop and only ever pops,
/// so a nested run serves what the outer one has collected.
package final class ReadyQueue {
    // Not checked for exclusive access: only the loop's thread gets here, and no access is open while anything else is
    // called.
    @exclusivity(unchecked) private var entries: ContiguousArray<(token: SourceToken, events: DescriptorEvents)> = []
    @exclusivity(unchecked) private var head = 0
    /// Entries from here on are left over.
    @exclusivity(unchecked) private var end = 0

    package init() {}

    package var isEmpty: Bool { head == end }
    package var count: Int { end - head }

    package func append(_ token: SourceToken, _ events: DescriptorEvents) {
        if end < entries.count { entries[end] = (token, events) } else { entries.append((token, events)) }
        end += 1
    }

    /// Sorts what waits by an order, without changing the order of equals.
    package func sort(by order: (SourceToken) -> Int) {
        guard count > 1 else { return }
        let waiting = entries[head..<end].enumerated().map { (order: order($1.token), place: $0, entry: $1) }
        entries.replaceSubrange(
            head..<end, with: waiting.sorted { ($0.order, $0.place) < ($1.order, $1.place) }.map(\.entry))
    }

    package func popFirst() -> (token: SourceToken, events: DescriptorEvents)? {
        guard head < end else { return nil }
        let entry = entries[head]
        head += 1
        if head == end { (head, end) = (0, 0) }
        return entry
    }
}
