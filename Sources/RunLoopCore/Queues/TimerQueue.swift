internal import CShims

/// The pending timers and calls, by deadline and modes.
///
/// An item is in one *lane*. There is a lane for each set of modes in use, with a heap of its own, so that running a
/// mode looks at the heads of a few lanes, and switching modes costs nothing per timer. A *node* is an object; a *call*
/// has none, and lies in a slot of the queue's own. Both are items of the same heaps.
///
/// Postponing an item only notes its new position in the order. Its entry moves there when it reaches the top. So
/// arming is O(log n), disarming O(1) on average, postponing O(1), and finding the next deadline O(lanes of the mode).
/// Once the buffers have grown, nothing is allocated.
///
/// The queue calls no handler. Its caller releases nodes and blocks when the queue is in order.
struct TimerQueue<Node: TimerQueueNode>: ~Copyable {
    private var lanes = Buffer<TimerLane<Node>>()
    /// The lane found last: the next timer is probably for the same modes.
    private var lastLane = 0
    /// The lanes that a mode looks at, by the mode's id.
    private var lanesOfMode = Buffer<Buffer<Int>>()
    /// The lanes that every mode looks at, even a mode in which nothing is scheduled.
    private var lanesOfAnyMode = Buffer<Int>()

    /// The nodes that are not armed.
    private var resting = Buffer<UnownedReference<Node>>()
    /// The node that was found due last, if it repeats and is still being called. Its entry stays in place, to be moved
    /// once instead of being taken out and put in. Before the next due item is looked for, the node leaves the heap.
    private var called: UnownedReference<Node>?
    /// The nodes that a pass found and may not fire, because they were armed or joined their mode after the pass had
    /// begun. They return to their heaps before the next deadline is looked for.
    private var aside = Buffer<TimerHeap<Node>.Entry>()
    private var calls = CallTable()
    /// The last modes passed to ``findLane(for:common:)``, and their lane. Lanes are never given up, and a mode that
    /// becomes common joins the lanes of common items.
    private var lastModes = RunLoop.Modes.nobodys
    private var laneOfLastModes = 0
    /// The lane from which an item was last removed.
    private var lastLeftLane = 0

    /// The order of the next arming. Orders decide between equal deadlines, and tell a pass which items were armed
    /// earlier.
    private(set) var nextOrder: UInt64

    /// Indicates whether a pass may be under way, so that joins of modes matter.
    var notesJoins = false
    /// The orders of the items' last joins of modes, since the outermost pass now under way began.
    private var joins: [UnsafeRawPointer: [RunLoop.Mode: UInt64]] = [:]
    /// Finds a lane by its membership. Last, so that the fields used by a fire lie together.
    private var laneIndex = HashIndex()

    /// - Parameter nextOrder: greater than the order in any token that may be used with this queue.
    init(nextOrder: UInt64 = 1) {
        self.nextOrder = nextOrder
    }

    // MARK: Nodes and lanes

    /// Adds a node, which rests until it is armed, and retains it if `keeps` is true.
    mutating func register(_ node: Node, _ membership: Membership, keeps: Bool = true) {
        if keeps { UnownedReference(node).retain() }
        enter(node, lane(for: membership))
        rest(UnownedReference(node))
    }

    /// Adds a node, retains it, and arms it at once.
    @inline(__always)
    mutating func register(_ node: Node, _ membership: Membership, at deadline: RunLoop.Instant, order: UInt64) {
        UnownedReference(node).retain()
        let lane = lane(for: membership)
        enter(node, lane)
        node.noteArmed(at: deadline, order)
        node.queuePlace = .heap
        lanes[lane].heap.insert(.init(deadline: deadline, item: TimerReference(UnownedReference(node))))
    }

    /// Adds a node without a tolerance, which its owner keeps, to the lane found last, and arms it at once.
    @inline(__always)
    mutating func add(_ node: Node, at deadline: RunLoop.Instant) {
        let lane = laneOfLastModes
        lanes[lane].members &+= 1
        assert(node.earliest == deadline && !node.hasTolerance, "a node with a tolerance was added as one without")
        node.lane = lane
        node.laterOrder = 0
        node.queueOrder = takeOrder()
        node.queuePlace = .heap
        lanes[lane].heap.insert(.init(deadline: deadline, item: TimerReference(UnownedReference(node))))
    }

    @inline(__always)
    private mutating func enter(_ node: Node, _ lane: Int) {
        lanes[lane].members += 1
        node.lane = lane
    }

    /// Removes a node. The caller releases it if it was kept.
    @inline(__always)
    mutating func unregister(_ node: Node) {
        leaveLane(node.lane, node.queuePlace, node.queueIndex, TimerReference(UnownedReference(node)))
    }

    /// Removes an item from its lane, probably the one that the last item left.
    // With the expected lane, the processor knows the addresses of count and heap without the item. So it begins with
    // the next items while this one is on its way from memory: with 100,000 items a cancel took 0.8 of the time.
    @inline(__always)
    private mutating func leaveLane(
        _ lane: Int, _ place: TimerQueuePlace, _ index: Int32, _ item: TimerReference<Node>
    ) {
        let expected = rlk_disguise(lastLeftLane)
        assert(lanes[lane].members > 0, "a lane loses more members than it has")
        assert(
            place != .heap || lanes[lane].heap[Int(index)].item.address == item.address,
            "an item is not where it says in its heap")
        if lane == lastLeftLane && place == .heap {
            lanes[expected].members &-= 1
            lanes[expected].heap.remove(at: Int(index))
        } else {
            leaveOtherLane(lane, item)
        }
    }

    @inline(never)
    private mutating func leaveOtherLane(_ lane: Int, _ item: TimerReference<Node>) {
        lanes[lane].members -= 1
        takeOut(item)
        lastLeftLane = lane
    }

    func membership(of node: Node) -> Membership { lanes[node.lane].membership }
    func membership(of item: TimerReference<Node>) -> Membership { lanes[item.lane].membership }

    /// Moves a node to other modes. Its deadline and its position in the order stay.
    mutating func move(_ node: Node, to membership: Membership) {
        let old = self.membership(of: node)
        guard old != membership else { return }
        let isArmed = node.isArmed
        let reference = UnownedReference(node)
        takeOut(TimerReference(reference))
        lanes[node.lane].members -= 1
        enter(node, lane(for: membership))
        noteJoin(node, membership.modes.subtracting(old.modes))
        guard isArmed else { return rest(reference) }
        insert(TimerReference(reference), at: node.deadline, order: node.order)
    }

    /// Puts every common item into `mode`, which has become a common mode.
    mutating func addCommonMode(_ mode: RunLoop.Mode) {
        for lane in lanes.indices where lanes[lane].membership.isCommon {
            guard !lanes[lane].membership.modes.contains(mode) else { continue }
            if !lanes[lane].membership.isEverywhere { addLane(lane, to: mode) }
            laneIndex.remove(lane, lanes[lane].membership.word)
            lanes[lane].membership.modes.insert(mode)
            laneIndex.insert(lane, lanes[lane].membership.word)
            for item in items(of: lane) { noteJoin(item, ModeSet(mode)) }
        }
    }

    private mutating func lane(for membership: Membership) -> Int {
        if lastLane < lanes.count, lanes[lastLane].membership == membership { return lastLane }
        lastLane = otherLane(for: membership)
        return lastLane
    }

    /// Returns whether the lane of these modes was found last.
    @inline(__always)
    func knowsLane(for modes: RunLoop.Modes) -> Bool { modes == lastModes }

    /// Finds the lane of items that are in these modes and in no others; creates it if there is none.
    mutating func findLane(for modes: RunLoop.Modes, common: ModeSet) {
        laneOfLastModes = lane(for: Membership.none.joining(modes, common: common))
        lastModes = modes
    }

    @inline(never)
    private mutating func otherLane(for membership: Membership) -> Int {
        if let lane = laneIndex.find(membership.word, where: { lanes[$0].membership == membership }) { return lane }
        require(lanes.count < 0xffff, "timers of one loop can be in 65,535 different sets of modes; reuse modes' names")
        let lane = lanes.count
        lanes.append(TimerLane(membership: membership))
        laneIndex.insert(lane, membership.word)
        guard !membership.isEverywhere else {
            lanesOfAnyMode.append(lane)
            for id in lanesOfMode.indices { lanesOfMode[id].append(lane) }
            return lane
        }
        for mode in membership.modes.all { addLane(lane, to: mode) }
        return lane
    }

    private mutating func addLane(_ lane: Int, to mode: RunLoop.Mode) {
        while lanesOfMode.count <= mode.id {
            var lanes = Buffer<Int>()
            for lane in lanesOfAnyMode.indices { lanes.append(lanesOfAnyMode[lane]) }
            lanesOfMode.append(lanes)
        }
        lanesOfMode[mode.id].append(lane)
    }

    private func countLanes(of mode: RunLoop.Mode) -> Int {
        mode.id < lanesOfMode.count ? lanesOfMode[mode.id].count : lanesOfAnyMode.count
    }

    private func lane(_ index: Int, of mode: RunLoop.Mode) -> Int {
        mode.id < lanesOfMode.count ? lanesOfMode[mode.id][index] : lanesOfAnyMode[index]
    }

    /// Notes that an armed node joins `modes` now: a pass of theirs that is under way must not fire it.
    mutating func noteJoin(_ node: Node, _ modes: ModeSet) {
        noteJoin(TimerReference(UnownedReference(node)), modes)
    }

    private mutating func noteJoin(_ item: TimerReference<Node>, _ modes: ModeSet) {
        guard notesJoins else { return }
        let order = takeOrder()
        for mode in modes.all { joins[item.address, default: [:]][mode] = order }
    }

    // MARK: Arming

    mutating func takeOrder() -> UInt64 {
        assert(nextOrder < 1 << 48, "the orders of calls have 48 bits")
        defer { nextOrder &+= 1 }
        return nextOrder
    }

    /// Arms a node, or arms it again. `order` was taken for it by ``takeOrder()``.
    mutating func arm(_ node: Node, at deadline: RunLoop.Instant, order: UInt64) {
        assert(order < nextOrder, "a node is armed with an order that was not taken")
        assert(node.deadline == deadline, "a node is armed for another date than its own")
        if node.queuePlace == .called {
            assert(called == UnownedReference(node), "another node is being called")
            called = nil
            node.queuePlace = .heap
        }
        guard node.queuePlace == .heap else {
            takeOut(TimerReference(UnownedReference(node)))
            return insert(TimerReference(UnownedReference(node)), at: deadline, order: order)
        }
        node.noteArmed(at: deadline, order)
        lanes[node.lane].heap.move(at: Int(node.queueIndex), to: deadline)
    }

    /// Notes that an armed node is due later than it was, or at the same time, and has a new position in the order.
    @inline(__always)
    mutating func postpone(_ node: Node, order: UInt64) {
        guard node.queuePlace == .heap else { return arm(node, at: node.deadline, order: order) }
        assert(order > node.order && order < nextOrder, "a node is postponed with an old order")
        assert(
            lanes[node.lane].heap[Int(node.queueIndex)].deadline <= node.deadline,
            "a node is postponed to an earlier date")
        node.laterOrder = order
    }

    mutating func disarm(_ node: Node) {
        guard node.isArmed else { return }
        takeOut(TimerReference(UnownedReference(node)))
        rest(UnownedReference(node))
    }

    @inline(__always)
    private mutating func insert(_ item: TimerReference<Node>, at deadline: RunLoop.Instant, order: UInt64) {
        assert(order > 0 && order < nextOrder, "an item is armed with an order that was not taken")
        item.noteArmed(at: deadline, order)
        item.setPlace(.heap)
        lanes[item.lane].heap.insert(.init(deadline: deadline, item: item))
    }

    private mutating func rest(_ node: UnownedReference<Node>) {
        node.with { $0.setPlace(.resting, resting.count) }
        resting.append(node)
    }

    /// Takes an item out of its present place. The caller decides where it goes.
    @inline(__always)
    private mutating func takeOut(_ item: TimerReference<Node>) {
        let (place, index, lane) = item.position
        assert(isThere(item), "an item is not where it says")
        switch place {
        case .heap:
            lanes[lane].heap.remove(at: index)
        case .called:
            called = nil
            lanes[lane].heap.remove(at: index)
        case .aside, .resting:
            takeOut(place, index)
        }
    }

    /// Returns whether an item is at its place; for assertions.
    private func isThere(_ item: TimerReference<Node>) -> Bool {
        let (place, index, lane) = item.position
        return switch place {
        case .heap: lanes[lane].heap[index].item.address == item.address
        case .called: called?.address == item.address && lanes[lane].heap[index].item.address == item.address
        case .aside: aside[index].item.address == item.address
        case .resting: resting[index].address == item.address
        }
    }

    @inline(never)
    private mutating func takeOut(_ place: TimerQueuePlace, _ index: Int) {
        if place == .aside {
            let last = aside.removeLast()
            guard index < aside.count else { return }
            aside[index] = last
            last.item.setIndex(index)
        } else {
            let last = resting.removeLast()
            guard index < resting.count else { return resting.shrink() }
            resting[index] = last
            last.with { $0.setPlace(.resting, index) }
            resting.shrink()
        }
    }

    // MARK: Calls

    /// Adds a call due at `date`, or up to `latest` if nothing else wakes the loop before.
    @inline(__always)
    mutating func add(
        _ block: consuming @escaping () -> Void, _ label: CallLabel, _ origin: RunLoop.Origin, _ modes: RunLoop.Modes,
        common: ModeSet, at date: RunLoop.Instant, until latest: RunLoop.Instant
    ) -> CallToken {
        if !knowsLane(for: modes) { findLane(for: modes, common: common) }
        let lane = laneOfLastModes
        assert(
            lanes[lane].membership == Membership.none.joining(modes, common: common),
            "the lane found last is not for these modes")
        assert(date <= latest, "a call is late before it is due")
        lanes[lane].members += 1
        let (slot, token) = calls.insert(consume block, label, origin, at: date, lane: lane, order: takeOrder())
        lanes[lane].heap.insert(.init(deadline: latest, item: TimerReference(slot)))
        return token
    }

    func isPending(_ token: CallToken) -> Bool { calls.find(token) != nil }

    /// Cancels a call, if it is pending. The caller releases the block.
    @inline(__always)
    mutating func cancel(_ token: CallToken) -> (block: () -> Void, label: CallLabel)? {
        guard let slot = calls.find(token) else { return nil }
        if !joins.isEmpty { joins[TimerReference<Node>(slot).address] = nil }
        leaveLane(slot.pointee.lane, slot.pointee.place, slot.pointee.index, TimerReference(slot))
        let label = slot.pointee.label
        return (calls.remove(slot, token)!, label)
    }

    /// Moves a pending call without a tolerance to another date and a new position in the order.
    @inline(__always)
    mutating func move(_ token: CallToken, to date: RunLoop.Instant) -> Bool {
        guard let slot = calls.find(token) else { return false }
        let order = takeOrder()
        // The entry in the heap is not read: that is another line of the cache.
        if date >= slot.pointee.date && slot.pointee.place == .heap {
            assert(
                lanes[slot.pointee.lane].heap[Int(slot.pointee.index)].deadline <= date,
                "a call with a tolerance was moved")
            slot.pointee.laterOrder = order
            slot.pointee.date = date
        } else {
            slot.pointee.date = date
            takeOut(TimerReference(slot))
            insert(TimerReference(slot), at: date, order: order)
        }
        return true
    }

    /// Hands over a call found by ``popDue(from:in:at:before:)``. Its slot is in use until the call has been made.
    @inline(__always)
    mutating func beginCall(_ slot: CallTable.Reference) -> (block: () -> Void, token: CallToken) {
        assert(slot.pointee.block != nil, "a call begins that was made or cancelled")
        slot.pointee.index = CallSlot.indexOfCalled
        return (slot.pointee.block.take()!, calls.token(of: slot))
    }

    @inline(__always)
    mutating func endCall(_ slot: CallTable.Reference, _ token: CallToken) {
        assert(slot.pointee.isBeingCalled, "a call ends that has not begun")
        assert(lanes[slot.pointee.lane].members > 0, "a lane loses more members than it has")
        lanes[slot.pointee.lane].members -= 1
        _ = calls.remove(slot, token)
    }

    // MARK: Due timers

    /// Begins a pass: nodes that earlier passes have set aside may fire now.
    ///
    /// - Parameter isOutermost: whether no other pass is under way, so that earlier joins no longer matter.
    /// - Returns: the mark that separates items armed before the pass from those armed during it.
    @inline(__always)
    mutating func beginPass(isOutermost: Bool) -> UInt64 {
        restore()
        if isOutermost && !joins.isEmpty { joins.removeAll(keepingCapacity: true) }
        return takeOrder()
    }

    /// Ends the firing of a pass.
    @inline(__always)
    mutating func restore() {
        if let called { takeOutCalled(called) }
        if !aside.isEmpty { restoreAside() }
    }

    @inline(never)
    private mutating func takeOutCalled(_ node: UnownedReference<Node>) {
        assert(node.with { $0.queuePlace } == .called, "a node leaves its call that is not in one")
        takeOut(TimerReference(node))
        rest(node)
    }

    @inline(never)
    private mutating func restoreAside() {
        while !aside.isEmpty {
            let entry = aside.removeLast()
            insert(entry.item, at: entry.deadline, order: entry.item.order)
        }
        aside.shrink()
    }

    /// Returns the lane in which something may be due in `mode`: the deadline of its top, which comes first, is not
    /// later than `now`, or the top's tolerance lets it come now.
    // Inlined into the pass: almost no instructions if nothing is due.
    @inline(__always)
    mutating func dueLane(in mode: RunLoop.Mode, at now: RunLoop.Instant) -> Int? {
        let count = countLanes(of: mode)
        guard count != 1 else {
            let lane = lane(0, of: mode)
            return isDue(lane, at: now) ? lane : nil
        }
        guard count > 0, let lane = head(of: mode, among: count), isDue(lane, at: now) else { return nil }
        return lane
    }

    /// Takes the due node from the top of its lane. The node is not armed from then on.
    ///
    /// - Returns: `nil` if the top node does not belong there, so that the lane has to be found again: the node is
    ///   being called, it was postponed, or it was not armed and in `mode` before the mark and is set aside.
    mutating func popDue(
        from lane: Int, in mode: RunLoop.Mode, at now: RunLoop.Instant, before mark: UInt64
    ) -> (item: TimerReference<Node>, deadline: RunLoop.Instant)? {
        assert(isDue(lane, at: now), "a node is taken before it is due")
        let top = lanes[lane].heap.top
        guard called == nil, top.item.laterOrder == 0, top.item.queueOrder < mark,
            joined(top.item, mode, before: mark)
        else {
            clearTop(of: lane)
            return nil
        }
        if top.item.isRepeating {
            top.item.setPlace(.called)
            called = top.item.node
        } else {
            lanes[lane].heap.removeTop()
            if top.item.call == nil { rest(top.item.node) }
        }
        return (top.item, min(top.deadline, now))
    }

    @inline(never)
    private mutating func clearTop(of lane: Int) {
        if let called { return takeOutCalled(called) }
        let top = lanes[lane].heap.top
        guard top.item.laterOrder == 0 else { return settleTop(of: lane) }
        assert(top.item.position.index == 0, "the top of a heap does not know its place")
        lanes[lane].heap.removeTop()
        top.item.setPlace(.aside)
        top.item.setIndex(aside.count)
        aside.append(top)
    }

    @inline(__always)
    private func isDue(_ lane: Int, at now: RunLoop.Instant) -> Bool {
        guard !lanes[lane].heap.isEmpty else { return false }
        return lanes[lane].heap.top.deadline <= now || lanes[lane].heap.top.item.mayComeEarly(at: now)
    }

    @inline(__always)
    private func joined(_ item: TimerReference<Node>, _ mode: RunLoop.Mode, before mark: UInt64) -> Bool {
        guard !joins.isEmpty, let order = joins[item.address]?[mode] else { return true }
        return order < mark
    }

    /// Returns the next deadline in `mode`, if anything is armed in it.
    mutating func nextDeadline(in mode: RunLoop.Mode) -> RunLoop.Instant? {
        restore()
        return head(of: mode).map { lanes[$0].heap.top.deadline }
    }

    /// Returns the earliest date at which an item in `mode` may be called: with tolerances, not the next deadline.
    /// O(n).
    mutating func earliestDate(in mode: RunLoop.Mode) -> RunLoop.Instant? {
        restore()
        var earliest: RunLoop.Instant?
        for index in 0..<countLanes(of: mode) {
            let lane = lane(index, of: mode)
            for index in 0..<lanes[lane].heap.count {
                let date = lanes[lane].heap[index].item.earliest
                earliest = min(earliest ?? date, date)
            }
        }
        return earliest
    }

    /// Returns the lane whose top comes first in `mode`.
    @inline(__always)
    private mutating func head(of mode: RunLoop.Mode) -> Int? {
        let count = countLanes(of: mode)
        // Most modes have one lane, and no loop is needed for that.
        guard count == 1 else { return count == 0 ? nil : head(of: mode, among: count) }
        let lane = lane(0, of: mode)
        return hasHead(lane) ? lane : nil
    }

    @inline(never)
    private mutating func head(of mode: RunLoop.Mode, among count: Int) -> Int? {
        var best: Int?
        for index in 0..<count {
            let lane = lane(index, of: mode)
            guard hasHead(lane) else { continue }
            if let other = best, !TimerHeap.isBefore(lanes[lane].heap.top, lanes[other].heap.top) { continue }
            best = lane
        }
        return best
    }

    /// Returns whether the heap of a lane has an item; if so, moves the right one to its top.
    @inline(__always)
    private mutating func hasHead(_ lane: Int) -> Bool {
        guard !lanes[lane].heap.isEmpty else { return false }
        if lanes[lane].heap.top.item.laterOrder != 0 { settleTop(of: lane) }
        return true
    }

    /// Moves postponed entries from the top of a lane to where they belong now.
    @inline(never)
    private mutating func settleTop(of lane: Int) {
        while lanes[lane].heap.top.item.laterOrder != 0 {
            assert(
                lanes[lane].heap.top.item.laterOrder < nextOrder,
                "an item was postponed with an order that was not taken")
            lanes[lane].heap.move(at: 0, to: lanes[lane].heap.top.item.settle())
        }
    }

    /// Returns whether an item is scheduled in `mode`, armed or being called.
    // Mutating, because otherwise the compiler copies a whole queue that is a property for the call.
    mutating func hasMembers(in mode: RunLoop.Mode) -> Bool {
        for index in 0..<countLanes(of: mode) where lanes[lane(index, of: mode)].members > 0 { return true }
        return false
    }

    // MARK: Looking at the whole

    /// Returns the items of a lane, in no order, without calls that are being made.
    private func items(of lane: Int) -> [TimerReference<Node>] {
        var items: [TimerReference<Node>] = []
        for index in 0..<lanes[lane].heap.count { items.append(lanes[lane].heap[index].item) }
        for index in aside.indices where aside[index].item.lane == lane { items.append(aside[index].item) }
        for index in resting.indices where resting[index].with({ $0.lane == lane }) {
            items.append(TimerReference(resting[index]))
        }
        return items
    }

    /// Returns all scheduled items: armed ones first, in the order in which they are due.
    func items() -> [TimerReference<Node>] {
        var items = lanes.indices.flatMap { self.items(of: $0) }
        calls.forEach { if $0.pointee.isBeingCalled { items.append(TimerReference($0)) } }
        return items.ordered { left, right in
            if left.isArmed != right.isArmed { return left.isArmed }
            guard left.date == right.date else { return left.date < right.date }
            return left.order < right.order
        }
    }

    /// Removes everything. The caller releases the nodes and the blocks.
    mutating func removeAll() -> (nodes: [Node], calls: [(block: () -> Void, label: CallLabel)]) {
        let items = lanes.indices.flatMap { self.items(of: $0) }
        let blocks = items.compactMap { item in
            item.call.flatMap { slot in slot.pointee.block.take().map { (block: $0, label: slot.pointee.label) } }
        }
        let nodes = items.filter { $0.call == nil }.map(\.node.object)
        self = TimerQueue(nextOrder: nextOrder)
        return (nodes, blocks)
    }

    var armedCount: Int { lanes.indices.reduce(aside.count - (called == nil ? 0 : 1)) { $0 + lanes[$1].heap.count } }

    /// Traps unless heaps, nodes and counts agree.
    func checkInvariants() {
        precondition(called.map { $0.with { $0.queuePlace == .called } } ?? true, "a node is not being called any more")
        precondition(laneIndex.count == lanes.count, "the index of lanes has lost count")
        laneIndex.checkInvariants()
        calls.checkInvariants()
        for lane in lanes.indices {
            let membership = lanes[lane].membership
            let found = laneIndex.find(membership.word) { lanes[$0].membership == membership }
            precondition(found != nil, "a lane is not found by its modes")
            lanes[lane].heap.checkInvariants()
            for index in 0..<lanes[lane].heap.count {
                let (deadline, item) = (lanes[lane].heap[index].deadline, lanes[lane].heap[index].item)
                precondition(item.lane == lane, "an entry is in the heap of another lane")
                precondition(!item.isArmed || item.fits(deadline), "an entry has another deadline than its item")
            }
            var members = items(of: lane).count
            calls.forEach { if $0.pointee.isBeingCalled && $0.pointee.lane == lane { members += 1 } }
            precondition(members == lanes[lane].members, "a lane has lost count of its members")
        }
        for index in aside.indices {
            let position = aside[index].item.position
            precondition(
                position.place == .aside && position.index == index,
                "an item that was set aside does not know its place")
        }
        for index in resting.indices {
            let node = resting[index].object
            precondition(
                node.queuePlace == .resting && node.queueIndex == index, "a node that rests does not know its place")
        }
        for id in lanesOfMode.indices {
            for index in lanesOfMode[id].indices {
                let membership = lanes[lanesOfMode[id][index]].membership
                precondition(membership.contains(.init(id: id)), "a mode looks at a foreign lane")
            }
        }
    }
}

/// The part of a timer queue for one set of modes.
struct TimerLane<Node: TimerQueueNode>: ~Copyable {
    var membership: Membership
    var heap = TimerHeap<Node>()
    /// The number of items in the lane, armed or not. A mode with members is not empty.
    var members = 0
}
