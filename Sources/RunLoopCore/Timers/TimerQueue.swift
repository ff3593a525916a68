/// What can wait in a timer queue.
protocol TimerQueueClient {
    /// What it is due at, as it was armed or put off last.
    var deadline: RunLoop.Instant { get }
}

/// Who is to be called when, and in which modes.
///
/// A client has a *slot*. Its slot is in one *lane*: there is a lane for each set of modes in use, with a heap of its
/// own, so that running a mode looks at the heads of a few lanes and switching modes costs nothing per timer.
///
/// What is armed has one entry in the heap of its lane. To disarm it leaves the entry behind, *dead*: with the slot,
/// which nobody else gets until the entry has come to the top, or until the dead outnumber the living and are swept out.
/// To put it off only notes the new place in the order: the entry goes to its new place when it comes to the top. So
/// arming is O(log n), disarming and putting off are O(1), finding the next deadline is O(lanes of the mode). Nothing is
/// allocated once the arrays have grown to their size.
final class TimerQueue<Client: TimerQueueClient> {
    typealias SlotIndex = Int32

    // 24 bytes, and 16 for the entry: with a `Timer` and its closure 168 bytes, the size of what libevent allocates.
    private struct Slot {
        /// None if the slot is free, or its entry dead.
        var client: Client?
        /// The place in the order of the entry; 0 if there is none. Of a free slot, the next free one.
        var order: UInt64 = 0
        private var laneAndLaterOrder: UInt64 = 0

        init(_ client: Client, lane: Int) {
            self.client = client
            self.lane = lane
        }

        var isArmed: Bool { order != 0 }

        var lane: Int {
            get { Int(laneAndLaterOrder & 0xffff) }
            set { laneAndLaterOrder = laneAndLaterOrder & ~0xffff | UInt64(newValue) }
        }

        /// The place in the order that it took when it was put off; 0 if it was not. With a million armings a second, 48
        /// bits last for nine years.
        var laterOrder: UInt64 {
            get { laneAndLaterOrder >> 16 }
            set { laneAndLaterOrder = laneAndLaterOrder & 0xffff | newValue << 16 }
        }
    }

    private struct Lane {
        var membership: Membership
        var heap = DeadlineHeap()
        /// How many clients are in the lane, armed or not: what keeps a mode from being empty (R11).
        var members = 0
        var armed = 0
    }

    // Only the loop's thread gets here, and no access is open while a client is called: checks were an eighth of the cost
    // of a pass that fires a timer.
    @exclusivity(unchecked) private var slots: ContiguousArray<Slot> = []
    @exclusivity(unchecked) private var firstFree: SlotIndex = -1
    /// How many slots are not free.
    @exclusivity(unchecked) private var usedSlots = 0
    @exclusivity(unchecked) private var lanes: ContiguousArray<Lane> = []
    /// The lane that was asked for last: the next timer is likely to be for the same modes.
    @exclusivity(unchecked) private var lastLane = 0
    /// The lanes that a mode looks at, by the mode's id.
    @exclusivity(unchecked) private var lanesOfMode: ContiguousArray<ContiguousArray<Int>> = []
    /// The lane that every mode looks at, also those that nothing is scheduled in; none until it is needed.
    @exclusivity(unchecked) private var lanesOfAnyMode: ContiguousArray<Int> = []

    /// Counts every arming: the tie-break among equal deadlines, and the mark by which a pass knows what came before
    /// it.
    @exclusivity(unchecked) private(set) var nextOrder: UInt64 = 1

    /// Entries that a pass met and may not fire, because they were armed or joined its mode after it had begun. They
    /// are back in their heaps before anybody asks for the next deadline.
    @exclusivity(unchecked) private var setAside: [DeadlineHeap.Entry] = []

    /// Whether a pass may be under way, for which it matters when something joins a mode.
    @exclusivity(unchecked) var notesJoins = false
    /// When a slot last joined a mode, for joins since the outermost pass now under way began.
    @exclusivity(unchecked) private var joins: [SlotIndex: [RunLoop.Mode: UInt64]] = [:]

    // MARK: Slots and lanes

    func register(_ client: Client, _ membership: Membership) -> SlotIndex {
        let lane = lane(for: membership)
        lanes[lane].members += 1
        return occupy(client, lane)
    }

    private func occupy(_ client: Client, _ lane: Int) -> SlotIndex {
        usedSlots += 1
        guard firstFree >= 0 else {
            slots.append(Slot(client, lane: lane))
            return SlotIndex(slots.count - 1)
        }
        let index = firstFree
        firstFree = SlotIndex(truncatingIfNeeded: slots[Int(index)].order)
        slots[Int(index)] = Slot(client, lane: lane)
        return index
    }

    /// Nothing refers to the slot any more, and no entry belongs to it.
    private func free(_ index: SlotIndex) {
        slots[Int(index)].order = UInt64(bitPattern: Int64(firstFree))
        firstFree = index
        usedSlots -= 1
    }

    /// Lets the client go.
    func unregister(_ index: SlotIndex) {
        if !joins.isEmpty { joins[index] = nil }
        let lane = slots[Int(index)].lane
        lanes[lane].members -= 1
        slots[Int(index)].client = nil
        if slots[Int(index)].isArmed { entryDied(in: lane) } else { free(index) }
        if usedSlots == 0 && slots.count > 1024 { (slots, firstFree) = ([], -1) }
    }

    func membership(of index: SlotIndex) -> Membership {
        lanes[slots[Int(index)].lane].membership
    }

    /// Moves a client to other modes; its deadline and its place in the order stay.
    ///
    /// - Returns: its slot from now on.
    func move(_ index: SlotIndex, to membership: Membership) -> SlotIndex {
        let old = self.membership(of: index)
        guard old != membership else { return index }
        let armed = slots[Int(index)].isArmed ? (slots[Int(index)].client!.deadline, order(of: index)) : nil
        let index = disarm(index)
        lanes[slots[Int(index)].lane].members -= 1
        let lane = lane(for: membership)
        lanes[lane].members += 1
        slots[Int(index)].lane = lane
        noteJoin(index, membership.modes.subtracting(old.modes))
        guard let (deadline, order) = armed else { return index }
        return arm(index, at: deadline, order: order)
    }

    /// Puts every common item into `mode`, which has become a common one.
    func addCommonMode(_ mode: RunLoop.Mode) {
        for lane in lanes.indices where lanes[lane].membership.isCommon {
            guard !lanes[lane].membership.modes.contains(mode) else { continue }
            lanes[lane].membership.modes.insert(mode)
            addLane(lane, to: mode)
            for index in slots.indices where slots[index].lane == lane && slots[index].client != nil {
                noteJoin(SlotIndex(index), ModeSet(mode))
            }
        }
    }

    private func lane(for membership: Membership) -> Int {
        if lastLane < lanes.count, lanes[lastLane].membership == membership { return lastLane }
        lastLane = lanes.firstIndex { $0.membership == membership } ?? makeLane(for: membership)
        return lastLane
    }

    private func makeLane(for membership: Membership) -> Int {
        require(lanes.count < 0xffff, "timers of one loop can be in 65,535 different sets of modes; reuse modes' names")
        lanes.append(Lane(membership: membership))
        if membership.isEverywhere {
            lanesOfAnyMode.append(lanes.count - 1)
            for id in lanesOfMode.indices { lanesOfMode[id].append(lanes.count - 1) }
        }
        for mode in membership.modes.all { addLane(lanes.count - 1, to: mode) }
        return lanes.count - 1
    }

    private func addLane(_ lane: Int, to mode: RunLoop.Mode) {
        while lanesOfMode.count <= mode.id { lanesOfMode.append(lanesOfAnyMode) }
        lanesOfMode[mode.id].append(lane)
    }

    @inline(__always)
    private func forEachLane(of mode: RunLoop.Mode, _ body: (Int) -> Void) {
        if mode.id < lanesOfMode.count {
            for place in 0..<lanesOfMode[mode.id].count { body(lanesOfMode[mode.id][place]) }
        } else {
            for lane in lanesOfAnyMode { body(lane) }
        }
    }

    /// Remembers that an armed slot comes to `modes` now: a pass of theirs that is under way must not fire it.
    func noteJoin(_ index: SlotIndex, _ modes: ModeSet) {
        guard notesJoins else { return }
        let order = takeOrder()
        modes.forEach { joins[index, default: [:]][$0] = order }
    }

    // MARK: Arming

    func takeOrder() -> UInt64 {
        defer { nextOrder += 1 }
        return nextOrder
    }

    /// Arms a client, or arms it anew. `order` is a place that was taken for it.
    ///
    /// - Returns: its slot from now on.
    func arm(_ index: SlotIndex, at deadline: RunLoop.Instant, order: UInt64) -> SlotIndex {
        let index = disarm(index)
        slots[Int(index)].order = order
        let lane = slots[Int(index)].lane
        lanes[lane].armed += 1
        lanes[lane].heap.insert(.init(deadline: deadline, slot: index), breakTie)
        return index
    }

    /// Notes that an armed client has become due later than it was, and has taken a new place in the order.
    func putOff(_ index: SlotIndex, order: UInt64) {
        slots[Int(index)].laterOrder = order
    }

    /// - Returns: the client's slot from now on.
    func disarm(_ index: SlotIndex) -> SlotIndex {
        guard slots[Int(index)].isArmed else { return index }
        let (client, lane) = (slots[Int(index)].client!, slots[Int(index)].lane)
        let new = occupy(client, lane)
        if let join = joins.isEmpty ? nil : joins.removeValue(forKey: index) { joins[new] = join }
        slots[Int(index)].client = nil
        entryDied(in: lane)
        return new
    }

    func isArmed(_ index: SlotIndex) -> Bool { slots[Int(index)].isArmed }

    func order(of index: SlotIndex) -> UInt64 {
        slots[Int(index)].laterOrder != 0 ? slots[Int(index)].laterOrder : slots[Int(index)].order
    }

    @inline(__always)
    private func breakTie(_ left: SlotIndex, _ right: SlotIndex) -> Bool {
        slots[Int(left)].order < slots[Int(right)].order
    }

    /// Bounds the memory: a heap never holds more dead entries than living ones and 64, and none without living ones.
    private func entryDied(in lane: Int) {
        lanes[lane].armed -= 1
        let armed = lanes[lane].armed
        guard armed > 0 else {
            for entry in lanes[lane].heap.entries { free(entry.slot) }
            return lanes[lane].heap.removeAll()
        }
        guard lanes[lane].heap.count > 2 * armed + 64 else { return }
        lanes[lane].heap.sweep(
            keeping: { entry in
                let isAlive = slots[Int(entry.slot)].client != nil
                if !isAlive { free(entry.slot) }
                return isAlive
            }, breakTie)
    }

    // MARK: What is due

    /// Begins a pass: what earlier passes set aside may fire now.
    ///
    /// - Parameter isOutermost: no other pass is under way, so that joins noted until now matter to nobody.
    /// - Returns: the mark that separates what was armed before the pass from what comes during it.
    func beginPass(isOutermost: Bool) -> UInt64 {
        restore()
        if isOutermost && !joins.isEmpty { joins.removeAll(keepingCapacity: true) }
        return takeOrder()
    }

    /// Ends the firing of a pass.
    func restore() {
        guard !setAside.isEmpty else { return }
        while let entry = setAside.popLast() {
            if slots[Int(entry.slot)].client == nil {
                free(entry.slot)
            } else {
                lanes[slots[Int(entry.slot)].lane].heap.insert(entry, breakTie)
            }
        }
    }

    /// The client whose turn it is in `mode`: the earliest deadline not later than `now`, among those that were armed
    /// and in the mode before the mark. It is disarmed.
    func popDue(
        in mode: RunLoop.Mode, at now: RunLoop.Instant, before mark: UInt64
    ) -> (client: Client, deadline: RunLoop.Instant)? {
        while let (lane, entry) = head(of: mode), entry.deadline <= now {
            lanes[lane].heap.removeTop(breakTie)
            let index = Int(entry.slot)
            guard slots[index].order < mark, joined(entry.slot, mode, before: mark) else {
                setAside.append(entry)
                continue
            }
            slots[index].order = 0
            lanes[lane].armed -= 1
            return (slots[index].client!, entry.deadline)
        }
        return nil
    }

    private func joined(_ index: SlotIndex, _ mode: RunLoop.Mode, before mark: UInt64) -> Bool {
        guard !joins.isEmpty, let order = joins[index]?[mode] else { return true }
        return order < mark
    }

    /// The next deadline in `mode`, if anything is armed in it.
    func nextDeadline(in mode: RunLoop.Mode) -> RunLoop.Instant? {
        restore()
        return head(of: mode)?.entry.deadline
    }

    private func head(of mode: RunLoop.Mode) -> (lane: Int, entry: DeadlineHeap.Entry)? {
        var best: (lane: Int, entry: DeadlineHeap.Entry)?
        forEachLane(of: mode) { lane in
            guard let top = top(of: lane) else { return }
            if let (_, entry) = best {
                let isEqual = entry.deadline == top.deadline
                if entry.deadline < top.deadline || (isEqual && breakTie(entry.slot, top.slot)) { return }
            }
            best = (lane, top)
        }
        return best
    }

    /// The first entry of a lane that is neither dead nor put off.
    @inline(__always)
    private func top(of lane: Int) -> DeadlineHeap.Entry? {
        while let top = lanes[lane].heap.top {
            let index = Int(top.slot)
            guard let client = slots[index].client else {
                lanes[lane].heap.removeTop(breakTie)
                free(top.slot)
                continue
            }
            guard slots[index].laterOrder != 0 else { return top }
            // It goes down with its old place in the order, and has the new one when it lies where it belongs: of equal
            // deadlines those that were armed meanwhile would be in its way otherwise.
            lanes[lane].heap.removeTop(breakTie)
            slots[index].order = slots[index].laterOrder
            slots[index].laterOrder = 0
            lanes[lane].heap.insert(.init(deadline: client.deadline, slot: top.slot), breakTie)
        }
        return nil
    }

    /// Whether a client is scheduled in `mode`, armed or being called (R11).
    func hasMembers(in mode: RunLoop.Mode) -> Bool {
        var hasMembers = false
        forEachLane(of: mode) { hasMembers = hasMembers || lanes[$0].members > 0 }
        return hasMembers
    }

    // MARK: Looking at the whole

    /// All clients with their memberships, those that are armed first, the next one first of all.
    func clients() -> [(client: Client, membership: Membership)] {
        slots.indices.filter { slots[$0].client != nil }
            .map { (slots[$0].client!, slots[$0].isArmed, order(of: SlotIndex($0)), slots[$0].lane) }
            .sorted { left, right in
                if left.1 != right.1 { return left.1 }
                return left.0.deadline != right.0.deadline ? left.0.deadline < right.0.deadline : left.2 < right.2
            }
            .map { ($0.0, lanes[$0.3].membership) }
    }

    /// Lets every client go.
    func removeAll() -> [Client] {
        let clients = slots.compactMap(\.client)
        (slots, firstFree, usedSlots) = ([], -1, 0)
        (lanes, lanesOfMode, lanesOfAnyMode) = ([], [], [])
        (setAside, joins) = ([], [:])
        return clients
    }

    var heapEntries: Int { lanes.reduce(0) { $0 + $1.heap.count } }

    /// Traps unless heaps, slots and counts agree.
    func checkInvariants() {
        var entries = [Int](repeating: 0, count: slots.count)
        for entry in setAside { entries[Int(entry.slot)] += 1 }
        for (number, lane) in lanes.enumerated() {
            lane.heap.checkInvariants(breakTie)
            for entry in lane.heap.entries {
                entries[Int(entry.slot)] += 1
                let slot = slots[Int(entry.slot)]
                guard let client = slot.client else { continue }
                precondition(slot.lane == number, "an entry is in the heap of another lane")
                precondition(
                    slot.laterOrder != 0 ? entry.deadline < client.deadline : entry.deadline == client.deadline,
                    "an entry has another deadline than its client")
            }
            let tenants = slots.filter { $0.client != nil && $0.lane == number }
            precondition(tenants.count == lane.members, "a lane has lost count of its members")
            precondition(tenants.count(where: \.isArmed) == lane.armed, "a lane has lost count of its armed slots")
        }
        var isFree = [Bool](repeating: false, count: slots.count)
        var next = firstFree
        while next >= 0 {
            isFree[Int(next)] = true
            next = SlotIndex(truncatingIfNeeded: slots[Int(next)].order)
        }
        precondition(isFree.count(where: { !$0 }) == usedSlots, "the slots in use are not counted")
        for (index, slot) in slots.enumerated() {
            if slot.client == nil {
                precondition(entries[index] == (isFree[index] ? 0 : 1), "a slot is neither free nor dead")
            } else {
                precondition(entries[index] == (slot.isArmed ? 1 : 0), "an armed slot has no entry, or several")
            }
        }
        for (id, lanesOfOne) in lanesOfMode.enumerated() {
            for lane in lanesOfOne {
                precondition(lanes[lane].membership.contains(.init(id: id)), "a mode looks at a foreign lane")
            }
        }
    }
}
