/// Who is called when, and in which modes.
///
/// A node is in one *lane*. There is a lane for each set of modes in use, with a heap of its own, so that running a
/// mode looks at the heads of a few lanes, and switching modes costs nothing per timer.
///
/// Postponing a node only notes its new place in the order. Its entry moves there when it reaches the top. So arming is
/// O(log n), disarming O(1) on average, postponing O(1), and finding the next deadline O(lanes of the mode). Once the
/// buffers have grown, nothing is allocated.
///
/// The queue calls nobody. Its caller lets nodes go, when the queue is in order.
struct TimerQueue<Node: TimerQueueNode>: ~Copyable {
    private var lanes = Buffer<TimerLane<Node>>()
    /// The lane that was asked for last: the next timer is probably for the same modes.
    private var lastLane = 0
    /// The lanes that a mode looks at, by the mode's id.
    private var lanesOfMode = Buffer<Buffer<Int>>()
    /// The lanes that every mode looks at, even a mode in which nothing is scheduled.
    private var lanesOfAnyMode = Buffer<Int>()

    /// The nodes that are not armed.
    private var resting = Buffer<UnownedReference<Node>>()
    /// Nodes that a pass found and may not fire, because they were armed or joined its mode after it had begun. They
    /// are back in their heaps before anybody asks for the next deadline.
    private var aside = Buffer<UnownedReference<Node>>()

    /// Counts every arming: it decides between equal deadlines, and it is the mark by which a pass knows what came
    /// before.
    private(set) var nextOrder: UInt64 = 1

    /// Whether a pass may be under way, so that it matters when a node joins a mode.
    var notesJoins = false
    /// When a node last joined a mode, for joins since the outermost pass now under way began.
    private var joins: [UnsafeRawPointer: [RunLoop.Mode: UInt64]] = [:]

    // MARK: Nodes and lanes

    /// Takes a node, which rests until it is armed, and keeps it.
    mutating func register(_ node: Node, _ membership: Membership) {
        enter(node, membership)
        rest(UnownedReference(node))
    }

    /// Takes a node and arms it at once.
    mutating func register(_ node: Node, _ membership: Membership, at deadline: RunLoop.Instant, order: UInt64) {
        enter(node, membership)
        insert(UnownedReference(node), at: deadline, order: order)
    }

    @inline(__always)
    private mutating func enter(_ node: Node, _ membership: Membership) {
        let lane = lane(for: membership)
        lanes[lane].members += 1
        UnownedReference(node).retain()
        node.lane = lane
    }

    /// Takes a node out. The caller releases it.
    mutating func unregister(_ node: Node) {
        let node = UnownedReference(node)
        if !joins.isEmpty { joins[node.address] = nil }
        lanes[node.with { $0.lane }].members -= 1
        takeOut(node)
    }

    func membership(of node: Node) -> Membership {
        lanes[node.lane].membership
    }

    /// Moves a node to other modes. Its deadline and its place in the order stay.
    mutating func move(_ node: Node, to membership: Membership) {
        let old = self.membership(of: node)
        guard old != membership else { return }
        let isArmed = node.isArmed
        let reference = UnownedReference(node)
        takeOut(reference)
        lanes[node.lane].members -= 1
        let lane = lane(for: membership)
        lanes[lane].members += 1
        node.lane = lane
        noteJoin(node, membership.modes.subtracting(old.modes))
        if isArmed { insert(reference, at: node.deadline, order: node.order) } else { rest(reference) }
    }

    /// Puts every common item into `mode`, which has become a common mode.
    mutating func addCommonMode(_ mode: RunLoop.Mode) {
        for lane in lanes.indices where lanes[lane].membership.isCommon {
            guard !lanes[lane].membership.modes.contains(mode) else { continue }
            if !lanes[lane].membership.isEverywhere { addLane(lane, to: mode) }
            lanes[lane].membership.modes.insert(mode)
            for node in nodes(of: lane) { noteJoin(node, ModeSet(mode)) }
        }
    }

    private mutating func lane(for membership: Membership) -> Int {
        if lastLane < lanes.count, lanes[lastLane].membership == membership { return lastLane }
        lastLane = lanes.indices.first { lanes[$0].membership == membership } ?? makeLane(for: membership)
        return lastLane
    }

    private mutating func makeLane(for membership: Membership) -> Int {
        require(lanes.count < 0xffff, "timers of one loop can be in 65,535 different sets of modes; reuse modes' names")
        let lane = lanes.count
        lanes.append(TimerLane(membership))
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
        guard notesJoins else { return }
        let order = takeOrder()
        for mode in modes.all { joins[UnownedReference(node).address, default: [:]][mode] = order }
    }

    // MARK: Arming

    mutating func takeOrder() -> UInt64 {
        defer { nextOrder += 1 }
        return nextOrder
    }

    /// Arms a node, or arms it again. `order` is a place that was taken for it.
    mutating func arm(_ node: Node, at deadline: RunLoop.Instant, order: UInt64) {
        guard node.queuePlace == .heap else {
            takeOut(UnownedReference(node))
            return insert(UnownedReference(node), at: deadline, order: order)
        }
        node.noteArmed(at: deadline, order)
        lanes[node.lane].heap.move(at: Int(node.queueIndex), to: deadline)
    }

    /// Notes that an armed node is due later than it was, or at the same time, and has a new place in the order.
    @inline(__always)
    mutating func postpone(_ node: Node, order: UInt64) {
        guard node.queuePlace == .heap else { return arm(node, at: node.deadline, order: order) }
        node.laterOrder = order
    }

    mutating func disarm(_ node: Node) {
        guard node.isArmed else { return }
        takeOut(UnownedReference(node))
        rest(UnownedReference(node))
    }

    @inline(__always)
    private mutating func insert(_ node: UnownedReference<Node>, at deadline: RunLoop.Instant, order: UInt64) {
        let lane = node.with { node in
            node.noteArmed(at: deadline, order)
            return node.lane
        }
        lanes[lane].heap.insert(.init(deadline: deadline, node: node))
    }

    private mutating func rest(_ node: UnownedReference<Node>) {
        node.with { $0.setPlace(.resting, resting.count) }
        resting.append(node)
    }

    /// Takes a node from where it is. The caller decides where it goes.
    private mutating func takeOut(_ node: UnownedReference<Node>) {
        let (place, index, lane) = node.with { ($0.queuePlace, Int($0.queueIndex), $0.lane) }
        switch place {
        case .heap:
            lanes[lane].heap.remove(at: index)
        case .aside:
            let last = aside.removeLast()
            guard index < aside.count else { return }
            aside[index] = last
            last.with { $0.setPlace(.aside, index) }
        case .resting:
            let last = resting.removeLast()
            guard index < resting.count else { return resting.shrink() }
            resting[index] = last
            last.with { $0.setPlace(.resting, index) }
            resting.shrink()
        }
    }

    // MARK: What is due

    /// Begins a pass: what earlier passes have set aside may fire now.
    ///
    /// - Parameter isOutermost: whether no other pass is under way, so that earlier joins no longer matter.
    /// - Returns: the mark that separates what was armed before the pass from what comes during it.
    @inline(__always)
    mutating func beginPass(isOutermost: Bool) -> UInt64 {
        restore()
        if isOutermost && !joins.isEmpty { joins.removeAll(keepingCapacity: true) }
        return takeOrder()
    }

    /// Ends the firing of a pass.
    @inline(__always)
    mutating func restore() {
        if !aside.isEmpty { restoreAside() }
    }

    @inline(never)
    private mutating func restoreAside() {
        while !aside.isEmpty {
            let node = aside.removeLast()
            let (deadline, order) = node.with { ($0.deadline, $0.order) }
            insert(node, at: deadline, order: order)
        }
        aside.shrink()
    }

    /// The node whose turn it is in `mode`: the one with the earliest deadline, if that is not later than `now` or if
    /// its tolerance lets it come now, among those that were armed and in the mode before the mark. It is disarmed.
    mutating func popDue(
        in mode: RunLoop.Mode, at now: RunLoop.Instant, before mark: UInt64
    ) -> (node: UnownedReference<Node>, deadline: RunLoop.Instant)? {
        while let lane = head(of: mode) {
            let top = lanes[lane].heap.top
            // Most nodes have no tolerance, and need not be asked.
            let mayCome = top.deadline <= now || top.node.with { $0.hasTolerance && $0.earliest <= now }
            guard mayCome else { return nil }
            lanes[lane].heap.removeTop()
            guard top.node.with({ $0.queueOrder }) < mark, joined(top.node, mode, before: mark) else {
                top.node.with { $0.setPlace(.aside, aside.count) }
                aside.append(top.node)
                continue
            }
            rest(top.node)
            return (top.node, min(top.deadline, now))
        }
        return nil
    }

    private func joined(_ node: UnownedReference<Node>, _ mode: RunLoop.Mode, before mark: UInt64) -> Bool {
        guard !joins.isEmpty, let order = joins[node.address]?[mode] else { return true }
        return order < mark
    }

    /// The next deadline in `mode`, if anything is armed in it.
    mutating func nextDeadline(in mode: RunLoop.Mode) -> RunLoop.Instant? {
        restore()
        return head(of: mode).map { lanes[$0].heap.top.deadline }
    }

    /// The earliest moment at which anything in `mode` may be called. With tolerances that is not the next deadline.
    /// O(n).
    mutating func earliestDate(in mode: RunLoop.Mode) -> RunLoop.Instant? {
        restore()
        var earliest: RunLoop.Instant?
        for index in 0..<countLanes(of: mode) {
            let lane = lane(index, of: mode)
            for index in 0..<lanes[lane].heap.count {
                let date = lanes[lane].heap[index].node.with { $0.earliest }
                earliest = min(earliest ?? date, date)
            }
        }
        return earliest
    }

    /// The lane whose top comes first in `mode`.
    @inline(__always)
    private mutating func head(of mode: RunLoop.Mode) -> Int? {
        var best: Int?
        for index in 0..<countLanes(of: mode) {
            let lane = lane(index, of: mode)
            guard !lanes[lane].heap.isEmpty else { continue }
            if lanes[lane].heap.top.node.with({ $0.laterOrder }) != 0 { settleTop(of: lane) }
            if let other = best, !TimerHeap.isBefore(lanes[lane].heap.top, lanes[other].heap.top) { continue }
            best = lane
        }
        return best
    }

    /// Moves postponed entries from the top of a lane to where they belong now.
    @inline(never)
    private mutating func settleTop(of lane: Int) {
        while true {
            let node = lanes[lane].heap.top.node
            let deadline: RunLoop.Instant? = node.with { node in
                guard node.laterOrder != 0 else { return nil }
                let deadline = node.deadline
                node.noteArmed(at: deadline, node.laterOrder)
                return deadline
            }
            guard let deadline else { return }
            lanes[lane].heap.move(at: 0, to: deadline)
        }
    }

    /// Whether a node is scheduled in `mode`, armed or being called.
    // Mutating, because otherwise the compiler copies a whole queue that is a property for the call.
    mutating func hasMembers(in mode: RunLoop.Mode) -> Bool {
        for index in 0..<countLanes(of: mode) where lanes[lane(index, of: mode)].members > 0 { return true }
        return false
    }

    // MARK: Looking at the whole

    /// The nodes of a lane, in no order.
    private func nodes(of lane: Int) -> [Node] {
        var nodes: [Node] = []
        for index in 0..<lanes[lane].heap.count { nodes.append(lanes[lane].heap[index].node.object) }
        for index in aside.indices where aside[index].object.lane == lane { nodes.append(aside[index].object) }
        for index in resting.indices where resting[index].object.lane == lane { nodes.append(resting[index].object) }
        return nodes
    }

    /// All nodes, the armed ones first, in the order in which they are due.
    func nodes() -> [Node] {
        lanes.indices.flatMap { nodes(of: $0) }
            .sorted { left, right in
                if left.isArmed != right.isArmed { return left.isArmed }
                guard left.deadline == right.deadline else { return left.deadline < right.deadline }
                return left.order < right.order
            }
    }

    /// Takes every node out. The caller releases them.
    mutating func removeAll() -> [Node] {
        let all = lanes.indices.flatMap { nodes(of: $0) }
        let order = nextOrder
        self = TimerQueue()
        nextOrder = order
        return all
    }

    var armedCount: Int { lanes.indices.reduce(aside.count) { $0 + lanes[$1].heap.count } }

    /// Traps unless heaps, nodes and counts agree.
    func checkInvariants() {
        for lane in lanes.indices {
            lanes[lane].heap.checkInvariants()
            for index in 0..<lanes[lane].heap.count {
                let (deadline, node) = (lanes[lane].heap[index].deadline, lanes[lane].heap[index].node.object)
                precondition(node.lane == lane, "an entry is in the heap of another lane")
                precondition(
                    node.laterOrder != 0 ? deadline <= node.deadline : deadline == node.deadline,
                    "an entry has another deadline than its node")
            }
            precondition(nodes(of: lane).count == lanes[lane].members, "a lane has lost count of its members")
        }
        for index in aside.indices {
            let node = aside[index].object
            precondition(
                node.queuePlace == .aside && node.queueIndex == index,
                "a node that was set aside does not know its place")
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

/// The nodes of a timer queue that are in the same modes.
struct TimerLane<Node: TimerQueueNode>: ~Copyable {
    var membership: Membership
    var heap = TimerHeap<Node>()
    /// How many nodes are in the lane, armed or not. They keep a mode from being empty.
    var members = 0

    init(_ membership: Membership) {
        self.membership = membership
    }
}
