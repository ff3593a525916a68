/// Elements by token. The version in a token tells the present tenant of a slot from earlier ones: what was collected
/// for an earlier one finds nothing.
struct SlotTable<Element: AnyObject> {
    private struct Slot {
        var element: Element?
        var version: UInt32 = 0
    }

    private var slots: [Slot] = []
    private var freeSlots: [UInt32] = []

    var all: [Element] { slots.compactMap(\.element) }

    mutating func insert(_ element: Element) -> SourceToken {
        if let slot = freeSlots.popLast() {
            slots[Int(slot)].element = element
            return SourceToken(slot: slot, version: slots[Int(slot)].version)
        }
        slots.append(Slot(element: element))
        return SourceToken(slot: UInt32(slots.count - 1), version: 0)
    }

    mutating func remove(_ token: SourceToken) {
        slots[Int(token.slot)].element = nil
        slots[Int(token.slot)].version &+= 1
        freeSlots.append(token.slot)
    }

    subscript(token: SourceToken) -> Element? {
        let slot = slots[Int(token.slot)]
        return slot.version == token.version ? slot.element : nil
    }
}
