/// A table of elements by token. The caller keeps each element until it is removed. The version in a token
/// distinguishes the tenants of a slot: an event collected for an earlier tenant finds nothing.
struct SlotTable<Element: AnyObject> {
    private struct Slot {
        var element: UnownedReference<Element>?
        var version: UInt32 = 0
    }

    private var slots: [Slot] = []
    private var freeSlots: [UInt32] = []

    var all: [Element] { slots.compactMap { $0.element?.object } }

    mutating func insert(_ element: Element) -> SourceToken {
        let slot = freeSlots.popLast() ?? UInt32(slots.count)
        if slot == slots.count { slots.append(Slot()) }
        assert(slots[Int(slot)].element == nil, "a free slot has an element")
        slots[Int(slot)].element = UnownedReference(element)
        return SourceToken(slot: slot, version: slots[Int(slot)].version)
    }

    mutating func remove(_ token: SourceToken) {
        assert(self[token] != nil, "a slot was freed that the token does not find")
        slots[Int(token.slot)].element = nil
        slots[Int(token.slot)].version &+= 1
        freeSlots.append(token.slot)
    }

    subscript(token: SourceToken) -> UnownedReference<Element>? {
        slots[Int(token.slot)].version == token.version ? slots[Int(token.slot)].element : nil
    }
}
