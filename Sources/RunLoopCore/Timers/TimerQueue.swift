/// Who is to be called when, and in which modes.
///
/// A client is in one *lane*: there is a lane for each set of modes in use, with a heap of its own, so that running a
/// mode looks at the heads of a few lanes and switching modes costs nothing per timer.
///
/// To put a client off only notes its new place in the order: its entry goes to its new place when it comes to the top.
/// So arming is O(log n), disarming O(1) on the average, putting off O(1), and finding the next deadline O(lanes of the
/// mode). Nothing is allocated once the buffers have grown to their size.
///
/// Nothing here calls anybody. To let a client go is for the caller, when the queue is in order.
struct TimerQueue<Client: TimerQueueClient>: ~Copyable {
    private var lanes = Buffer<TimerLane<Client>>()
    /// The lane that was asked for last: the next timer is likely to be for the same modes.
    private var lastLane = 0
    /// The lanes that a mode looks at, by the mode's id.
    private var lanesOfMode = Buffer<Buffer<Int>>()
    /// The lanes that every mode looks at, also those that nothing is scheduled in.
    private var lanesOfAnyMode = Buffer<Int>()

    /// Those that are not armed.
    private var resting = Buffer<Client>()
    /// Those that a pass met and may not fire, because they were armed or joined its mode after it had begun. They are
    /// back in their heaps before anybody asks for the next deadline.
    private var aside = Buffer<Client>()

    /// Counts every arming: the tie-break among equal deadlines, and the mark by which a pass knows what came before
    /// it.
    private(set) var nextOrder: UInt64 = 1

    /// Whether a pass may be under way, for which it matters when something joins a mode.
    var notesJoins = false
    /// When a client last joined a mode, for joins since the outermost pass now under way began.
    private var joins: [UnsafeRawPointer: [RunLoop.Mode: UInt64]] = [:]

    // MARK: Clients and lanes

    /// Takes a client, which rests until it is armed, and keeps it.
    mutating func register(_ client: Client, _ membership: Membership) {
        enter(client, membership)
        rest(client)
    }

    /// Takes a client and arms it at once.
    mutating func register(_ client: Client, _ membership: Membership, at deadline: RunLoop.Instant, order: UInt64) {
        enter(client, membership)
        insert(client, at: deadline, order: order)
    }

    private mutating func enter(_ client: Client, _ membership: Membership) {
        let lane = lane(for: membership)
        lanes[lane].members += 1
        client.retain()
        client.withLink { $0.lane = lane }
    }

    /// Takes a client out. It is for the caller to release it.
    mutating func unregister(_ client: Client) {
        if !joins.isEmpty { joins[client.identity] = nil }
        lanes[client.link.lane].members -= 1
        takeOut(client)
    }

    func membership(of client: Client) -> Membership {
        lanes[client.link.lane].membership
    }

    /// Moves a client to other modes; its deadline and its place in the order stay.
    mutating func move(_ client: Client, to membership: Membership) {
        let old = self.membership(of: client)
        guard old != membership else { return }
        let isArmed = client.link.isArmed
        takeOut(client)
        lanes[client.link.lane].members -= 1
        let lane = lane(for: membership)
        lanes[lane].members += 1
        client.withLink { $0.lane = lane }
        noteJoin(client, membership.modes.subtracting(old.modes))
        if isArmed { insert(client, at: client.deadline, order: order(of: client)) } else { rest(client) }
    }

    /// Puts every common item into `mode`, which has become a common one.
    mutating func addCommonMode(_ mode: RunLoop.Mode) {
        for lane in lanes.indices where lanes[lane].membership.isCommon {
            guard !lanes[lane].membership.modes.contains(mode) else { continue }
            lanes[lane].membership.modes.insert(mode)
            addLane(lane, to: mode)
            for client in clients(of: lane) { noteJoin(client, ModeSet(mode)) }
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
        if membership.isEverywhere {
            lanesOfAnyMode.append(lane)
            for id in lanesOfMode.indices { lanesOfMode[id].append(lane) }
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

    /// Remembers that an armed client comes to `modes` now: a pass of theirs that is under way must not fire it.
    mutating func noteJoin(_ client: Client, _ modes: ModeSet) {
        guard notesJoins else { return }
        let order = takeOrder()
        for mode in modes.all { joins[client.identity, default: [:]][mode] = order }
    }

    // MARK: Arming

    mutating func takeOrder() -> UInt64 {
        defer { nextOrder += 1 }
        return nextOrder
    }

    /// Arms a client, or arms it anew. `order` is a place that was taken for it.
    mutating func arm(_ client: Client, at deadline: RunLoop.Instant, order: UInt64) {
        guard case .heap(let index) = client.link.place else {
            takeOut(client)
            return insert(client, at: deadline, order: order)
        }
        client.withLink { link in
            link.order = order
            link.laterOrder = 0
        }
        lanes[client.link.lane].heap.move(at: Int(index), to: deadline)
    }

    /// Notes that an armed client has become due later than it was, or not earlier, and has taken a new place in the
    /// order.
    mutating func putOff(_ client: Client, order: UInt64) {
        guard case .heap = client.link.place else { return arm(client, at: client.deadline, order: order) }
        client.withLink { $0.laterOrder = order }
    }

    mutating func disarm(_ client: Client) {
        guard client.link.isArmed else { return }
        takeOut(client)
        rest(client)
    }

    /// The place in the order of an armed client.
    func order(of client: Client) -> UInt64 {
        let link = client.link
        return link.laterOrder != 0 ? link.laterOrder : link.order
    }

    private mutating func insert(_ client: Client, at deadline: RunLoop.Instant, order: UInt64) {
        client.withLink { link in
            link.order = order
            link.laterOrder = 0
        }
        lanes[client.link.lane].heap.insert(.init(deadline: deadline, client: client))
    }

    private mutating func rest(_ client: Client) {
        client.withLink { $0.place = .resting(Int32(truncatingIfNeeded: resting.count)) }
        resting.append(client)
    }

    /// Takes a client from where it is. Where it is next is for the caller.
    private mutating func takeOut(_ client: Client) {
        switch client.link.place {
        case .heap(let index):
            lanes[client.link.lane].heap.remove(at: Int(index))
        case .aside(let index):
            let last = aside.removeLast()
            guard index < aside.count else { return }
            aside[Int(index)] = last
            last.withLink { $0.place = .aside(index) }
        case .resting(let index):
            let last = resting.removeLast()
            guard index < resting.count else { return resting.shrink() }
            resting[Int(index)] = last
            last.withLink { $0.place = .resting(index) }
            resting.shrink()
        }
    }

    // MARK: What is due

    /// Begins a pass: what earlier passes set aside may fire now.
    ///
    /// - Parameter isOutermost: no other pass is under way, so that joins noted until now matter to nobody.
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
            let client = aside.removeLast()
            insert(client, at: client.deadline, order: order(of: client))
        }
        aside.shrink()
    }

    /// The client whose turn it is in `mode`: the earliest deadline not later than `now`, or that its tolerance lets
    /// come now, among those that were armed and in the mode before the mark. It is disarmed.
    mutating func popDue(
        in mode: RunLoop.Mode, at now: RunLoop.Instant, before mark: UInt64
    ) -> (client: Client, deadline: RunLoop.Instant)? {
        while let lane = head(of: mode) {
            let top = lanes[lane].heap.top
            guard top.deadline <= now || top.client.earliest <= now else { return nil }
            lanes[lane].heap.removeTop()
            guard top.client.link.order < mark, joined(top.client, mode, before: mark) else {
                top.client.withLink { $0.place = .aside(Int32(truncatingIfNeeded: aside.count)) }
                aside.append(top.client)
                continue
            }
            rest(top.client)
            return (top.client, min(top.deadline, now))
        }
        return nil
    }

    private func joined(_ client: Client, _ mode: RunLoop.Mode, before mark: UInt64) -> Bool {
        guard !joins.isEmpty, let order = joins[client.identity]?[mode] else { return true }
        return order < mark
    }

    /// The next deadline in `mode`, if anything is armed in it.
    mutating func nextDeadline(in mode: RunLoop.Mode) -> RunLoop.Instant? {
        restore()
        return head(of: mode).map { lanes[$0].heap.top.deadline }
    }

    /// The lane whose top comes first in `mode`.
    private mutating func head(of mode: RunLoop.Mode) -> Int? {
        var best: Int?
        for index in 0..<countLanes(of: mode) {
            let lane = lane(index, of: mode)
            guard !lanes[lane].heap.isEmpty else { continue }
            if lanes[lane].heap.top.client.link.laterOrder != 0 { settleTop(of: lane) }
            if let other = best, !TimerHeap.isBefore(lanes[lane].heap.top, lanes[other].heap.top) { continue }
            best = lane
        }
        return best
    }

    /// Sends what was put off from the top of a lane to where it belongs now.
    @inline(never)
    private mutating func settleTop(of lane: Int) {
        while true {
            let client = lanes[lane].heap.top.client
            guard client.link.laterOrder != 0 else { return }
            client.withLink { link in
                link.order = link.laterOrder
                link.laterOrder = 0
            }
            lanes[lane].heap.move(at: 0, to: client.deadline)
        }
    }

    /// Whether a client is scheduled in `mode`, armed or being called (R11).
    // Mutating, for the compiler copies the whole of a queue that is a property for a call that is not.
    mutating func hasMembers(in mode: RunLoop.Mode) -> Bool {
        for index in 0..<countLanes(of: mode) where lanes[lane(index, of: mode)].members > 0 { return true }
        return false
    }

    // MARK: Looking at the whole

    /// The clients of a lane, in no order.
    private func clients(of lane: Int) -> [Client] {
        var clients: [Client] = []
        for index in 0..<lanes[lane].heap.count { clients.append(lanes[lane].heap[index].client) }
        for index in aside.indices where aside[index].link.lane == lane { clients.append(aside[index]) }
        for index in resting.indices where resting[index].link.lane == lane { clients.append(resting[index]) }
        return clients
    }

    /// All clients with their memberships, those that are armed first, the next one first of all.
    func clients() -> [(client: Client, membership: Membership)] {
        lanes.indices.flatMap { clients(of: $0) }
            .sorted { left, right in
                if left.link.isArmed != right.link.isArmed { return left.link.isArmed }
                guard left.deadline == right.deadline else { return left.deadline < right.deadline }
                return order(of: left) < order(of: right)
            }
            .map { ($0, membership(of: $0)) }
    }

    /// Takes every client out. It is for the caller to release them.
    mutating func removeAll() -> [Client] {
        let all = lanes.indices.flatMap { clients(of: $0) }
        let order = nextOrder
        self = TimerQueue()
        nextOrder = order
        return all
    }

    var armedCount: Int { lanes.indices.reduce(aside.count) { $0 + lanes[$1].heap.count } }

    /// Traps unless heaps, clients and counts agree.
    func checkInvariants() {
        for lane in lanes.indices {
            lanes[lane].heap.checkInvariants()
            for index in 0..<lanes[lane].heap.count {
                let entry = lanes[lane].heap[index]
                precondition(entry.client.link.lane == lane, "an entry is in the heap of another lane")
                let isPutOff = entry.client.link.laterOrder != 0
                precondition(
                    isPutOff ? entry.deadline <= entry.client.deadline : entry.deadline == entry.client.deadline,
                    "an entry has another deadline than its client")
            }
            precondition(clients(of: lane).count == lanes[lane].members, "a lane has lost count of its members")
        }
        for index in aside.indices {
            guard case .aside(let place) = aside[index].link.place, place == index else {
                preconditionFailure("a client that was set aside does not know its place")
            }
        }
        for index in resting.indices {
            guard case .resting(let place) = resting[index].link.place, place == index else {
                preconditionFailure("a client that rests does not know its place")
            }
        }
        for id in lanesOfMode.indices {
            for index in lanesOfMode[id].indices {
                let membership = lanes[lanesOfMode[id][index]].membership
                precondition(membership.contains(.init(id: id)), "a mode looks at a foreign lane")
            }
        }
    }
}

/// The clients of a timer queue that are in the same modes.
struct TimerLane<Client: TimerQueueClient>: ~Copyable {
    var membership: Membership
    var heap = TimerHeap<Client>()
    /// How many clients are in the lane, armed or not: what keeps a mode from being empty (R11).
    var members = 0

    init(_ membership: Membership) {
        self.membership = membership
    }
}
