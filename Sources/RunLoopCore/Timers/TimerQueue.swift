/// What the queue calls when a deadline has come.
protocol TimerQueueClient: AnyObject {
    /// Its deadline has come; the queue has disarmed it.
    ///
    /// - Returns: whether it called anybody.
    func deadlineCame(in loop: RunLoop) -> Bool

    /// The loop has ended and forgets it.
    ///
    /// - Returns: what the client kept. It is let go of when every client knows that the loop has ended: deinits may
    ///   call any of them.
    func loopEnded() -> Any?

    /// What a dump says of it.
    func describe(_ membership: Membership) -> RunLoop.Dump.Item
}

/// Who is to be called when, and in which modes.
///
/// A client has a *slot*. Its slot is in one *lane*: there is a lane for each set of modes in use, with a heap of its
/// own, so that running a mode looks at the heads of a few lanes and switching modes costs nothing per timer.
///
/// Disarming only gives the slot a new version; the entry left in the heap is dropped when it comes to the top, or in a
/// sweep once the dead outnumber the living. Arming is O(log n), disarming O(1), finding the next deadline O(lanes of
/// the mode). Nothing is allocated once the arrays have grown to their size.
struct TimerQueue {
    typealias SlotIndex = Int32

    private struct Slot {
        var client: (any TimerQueueClient)?
        var deadline: RunLoop.Instant
        var order: UInt64
        var lane: Int32
        var version: UInt32
        var isArmed: Bool
    }

    private struct Lane {
        var membership: Membership
        var heap = DeadlineHeap()
        /// How many slots are in the lane, armed or not: what keeps a mode from being empty (R11).
        var members = 0
        var armed = 0
    }

    private var slots: ContiguousArray<Slot> = []
    private var freeSlots: ContiguousArray<SlotIndex> = []
    private var lanes: ContiguousArray<Lane> = []
    /// The lanes that a mode looks at, by the mode's id.
    private var lanesOfMode: ContiguousArray<ContiguousArray<Int>> = []
    /// The lane that every mode looks at, also those that nothing is scheduled in; none until it is needed.
    private var lanesOfAnyMode: ContiguousArray<Int> = []

    /// Counts every arming: the tie-break among equal deadlines, and the mark by which a pass knows what came before
    /// it.
    private(set) var nextOrder: UInt64 = 1

    /// Entries that a pass met and may not fire, because they were armed or joined its mode after it had begun. They
    /// are back in their heaps before anybody asks for the next deadline.
    private var setAside: [DeadlineHeap.Entry] = []

    /// When a slot last joined a mode, for joins since the outermost pass now under way began.
    private var joins: [SlotIndex: [RunLoop.Mode: UInt64]] = [:]

    // MARK: Slots and lanes

    mutating func register(_ client: any TimerQueueClient, _ membership: Membership) -> SlotIndex {
        let lane = lane(for: membership)
        lanes[lane].members += 1
        if let index = freeSlots.popLast() {
            slots[Int(index)].client = client
            slots[Int(index)].lane = Int32(lane)
            return index
        }
        slots.append(
            Slot(client: client, deadline: .distantFuture, order: 0, lane: Int32(lane), version: 0, isArmed: false))
        return SlotIndex(slots.count - 1)
    }

    /// Lets the client go.
    mutating func unregister(_ index: SlotIndex) {
        disarm(index)
        lanes[Int(slots[Int(index)].lane)].members -= 1
        slots[Int(index)].client = nil
        freeSlots.append(index)
        if !joins.isEmpty { joins[index] = nil }
    }

    func membership(of index: SlotIndex) -> Membership {
        lanes[Int(slots[Int(index)].lane)].membership
    }

    /// Moves a slot to other modes; its deadline and its place in the order stay.
    mutating func move(_ index: SlotIndex, to membership: Membership) {
        let old = self.membership(of: index)
        guard old != membership else { return }
        let (deadline, order, wasArmed) = (
            slots[Int(index)].deadline, slots[Int(index)].order, slots[Int(index)].isArmed
        )
        disarm(index)
        lanes[Int(slots[Int(index)].lane)].members -= 1
        let lane = lane(for: membership)
        lanes[lane].members += 1
        slots[Int(index)].lane = Int32(lane)
        noteJoin(index, membership.modes.subtracting(old.modes))
        if wasArmed { arm(index, at: deadline, order: order) }
    }

    /// Puts every common item into `mode`, which has become a common one.
    mutating func addCommonMode(_ mode: RunLoop.Mode) {
        for lane in lanes.indices where lanes[lane].membership.isCommon {
            guard !lanes[lane].membership.modes.contains(mode) else { continue }
            lanes[lane].membership.modes.insert(mode)
            addLane(lane, to: mode)
            for index in slots.indices where slots[index].lane == lane && slots[index].client != nil {
                noteJoin(SlotIndex(index), ModeSet(mode))
            }
        }
    }

    private mutating func lane(for membership: Membership) -> Int {
        if let known = lanes.firstIndex(where: { $0.membership == membership }) { return known }
        lanes.append(Lane(membership: membership))
        if membership.isEverywhere {
            lanesOfAnyMode.append(lanes.count - 1)
            for id in lanesOfMode.indices { lanesOfMode[id].append(lanes.count - 1) }
        }
        for mode in membership.modes.all { addLane(lanes.count - 1, to: mode) }
        return lanes.count - 1
    }

    private mutating func addLane(_ lane: Int, to mode: RunLoop.Mode) {
        while lanesOfMode.count <= mode.id { lanesOfMode.append(lanesOfAnyMode) }
        lanesOfMode[mode.id].append(lane)
    }

    private func lanes(of mode: RunLoop.Mode) -> ContiguousArray<Int> {
        mode.id < lanesOfMode.count ? lanesOfMode[mode.id] : lanesOfAnyMode
    }

    /// Remembers that an armed slot comes to `modes` now: a pass of theirs that is under way must not fire it.
    mutating func noteJoin(_ index: SlotIndex, _ modes: ModeSet) {
        let order = takeOrder()
        modes.forEach { joins[index, default: [:]][$0] = order }
    }

    // MARK: Arming

    mutating func takeOrder() -> UInt64 {
        defer { nextOrder += 1 }
        return nextOrder
    }

    /// Arms a slot, or arms it anew. `order` is a place that was taken earlier and is to be kept.
    mutating func arm(_ index: SlotIndex, at deadline: RunLoop.Instant, order: UInt64) {
        disarm(index)
        slots[Int(index)].deadline = deadline
        slots[Int(index)].order = order
        slots[Int(index)].isArmed = true
        let lane = Int(slots[Int(index)].lane)
        lanes[lane].armed += 1
        lanes[lane].heap.insert(
            .init(deadline: deadline, order: order, slot: index, version: slots[Int(index)].version))
        sweepIfNeeded(lane)
    }

    mutating func disarm(_ index: SlotIndex) {
        guard slots[Int(index)].isArmed else { return }
        slots[Int(index)].isArmed = false
        slots[Int(index)].version &+= 1
        lanes[Int(slots[Int(index)].lane)].armed -= 1
    }

    func order(of index: SlotIndex) -> UInt64 { slots[Int(index)].order }

    func deadline(of index: SlotIndex) -> RunLoop.Instant { slots[Int(index)].deadline }

    private func isLive(_ entry: DeadlineHeap.Entry) -> Bool {
        let slot = slots[Int(entry.slot)]
        return slot.isArmed && slot.version == entry.version
    }

    /// Bounds the memory: a heap never holds more dead entries than living ones and 64.
    private mutating func sweepIfNeeded(_ lane: Int) {
        guard lanes[lane].heap.count > 2 * lanes[lane].armed + 64 else { return }
        let slots = self.slots
        lanes[lane].heap.sweep { slots[Int($0.slot)].isArmed && slots[Int($0.slot)].version == $0.version }
    }

    // MARK: What is due

    /// Begins a pass: what earlier passes set aside may fire now.
    ///
    /// - Parameter isOutermost: no other pass is under way, so that joins noted until now matter to nobody.
    /// - Returns: the mark that separates what was armed before the pass from what comes during it.
    mutating func beginPass(isOutermost: Bool) -> UInt64 {
        restore()
        if isOutermost && !joins.isEmpty { joins.removeAll(keepingCapacity: true) }
        return takeOrder()
    }

    /// Ends the firing of a pass.
    mutating func restore() {
        while let entry = setAside.popLast() {
            guard isLive(entry) else { continue }
            lanes[Int(slots[Int(entry.slot)].lane)].heap.insert(entry)
        }
    }

    /// The client whose turn it is in `mode`: the earliest deadline not later than `now`, among those that were armed
    /// and in the mode before the mark. It is disarmed.
    mutating func popDue(
        in mode: RunLoop.Mode, at now: RunLoop.Instant, before mark: UInt64
    ) -> (client: any TimerQueueClient, deadline: RunLoop.Instant)? {
        while let (lane, entry) = head(of: mode), entry.deadline <= now {
            lanes[lane].heap.removeTop()
            guard entry.order < mark, joined(entry.slot, mode, before: mark) else {
                setAside.append(entry)
                continue
            }
            disarm(entry.slot)
            return (slots[Int(entry.slot)].client!, entry.deadline)
        }
        return nil
    }

    private func joined(_ index: SlotIndex, _ mode: RunLoop.Mode, before mark: UInt64) -> Bool {
        guard !joins.isEmpty, let order = joins[index]?[mode] else { return true }
        return order < mark
    }

    /// The next deadline in `mode`, if anything is armed in it.
    mutating func nextDeadline(in mode: RunLoop.Mode) -> RunLoop.Instant? {
        restore()
        return head(of: mode)?.entry.deadline
    }

    private mutating func head(of mode: RunLoop.Mode) -> (lane: Int, entry: DeadlineHeap.Entry)? {
        var best: (lane: Int, entry: DeadlineHeap.Entry)?
        for lane in lanes(of: mode) {
            while let top = lanes[lane].heap.top {
                guard isLive(top) else {
                    lanes[lane].heap.removeTop()
                    continue
                }
                if best == nil || top < best!.entry { best = (lane, top) }
                break
            }
        }
        return best
    }

    /// Whether a client is scheduled in `mode`, armed or being called (R11).
    func hasMembers(in mode: RunLoop.Mode) -> Bool {
        lanes(of: mode).contains { lanes[$0].members > 0 }
    }

    // MARK: Looking at the whole

    /// All clients with their memberships, the next one first, those not armed last.
    func clients() -> [(client: any TimerQueueClient, membership: Membership)] {
        slots.filter { $0.client != nil }
            .sorted { left, right in
                if left.isArmed != right.isArmed { return left.isArmed }
                return left.deadline != right.deadline ? left.deadline < right.deadline : left.order < right.order
            }
            .map { ($0.client!, lanes[Int($0.lane)].membership) }
    }

    /// Lets every client go.
    mutating func removeAll() -> [any TimerQueueClient] {
        let clients = slots.compactMap(\.client)
        self = TimerQueue()
        return clients
    }

    var heapEntries: Int { lanes.reduce(0) { $0 + $1.heap.count } }

    /// Traps unless heaps, slots and counts agree.
    func checkInvariants() {
        for (number, lane) in lanes.enumerated() {
            lane.heap.checkInvariants()
            let tenants = slots.filter { $0.client != nil && $0.lane == number }
            precondition(tenants.count == lane.members, "a lane has lost count of its members")
            precondition(tenants.count(where: \.isArmed) == lane.armed, "a lane has lost count of its armed slots")
            let live = lane.heap.entries.filter { isLive($0) && slots[Int($0.slot)].lane == number }
            let aside = setAside.filter { isLive($0) && slots[Int($0.slot)].lane == number }
            precondition(live.count + aside.count == lane.armed, "an armed slot has no entry, or several")
        }
        for (id, lanesOfOne) in lanesOfMode.enumerated() {
            for lane in lanesOfOne {
                precondition(lanes[lane].membership.contains(.init(id: id)), "a mode looks at a foreign lane")
            }
        }
    }
}
