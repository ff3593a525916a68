import RunLoopKit
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopCore

/// The queue compared with the simplest possible one, an array that is searched from end to end.
@Suite("The timer queue")
struct TimerQueueModelTests {
    @Test("random operations agree with an array that is searched", arguments: seeds(usually: 6))
    func randomOperations(seed: UInt64) {
        var trial = Trial(seed: seed)
        for step in 1...600 {
            trial.step()
            trial.queue.checkInvariants()
            if let difference = trial.difference() {
                Issue.record("seed \(seed), step \(step): \(difference)")
                break
            }
        }
        trial.queue.end()
    }

    @Test("many items of few modes agree with an array that is searched", arguments: [100, 200] as [UInt64])
    func manyNodes(seed: UInt64) {
        var trial = Trial(seed: seed, registerWeight: 60)
        for step in 1...400 {
            trial.step()
            trial.queue.checkInvariants()
            if let difference = trial.difference() {
                Issue.record("seed \(seed), step \(step): \(difference)")
                break
            }
        }
        trial.queue.end()
    }

    @Test("armed and disarmed 200,000 times, the heap stays small")
    func boundedByDisarming() {
        var queue = TimerQueue<Node>()
        let node = Node(0)
        queue.register(node, inDefault)
        var most = 0
        for index in 0..<200_000 {
            node.deadline = ns(Int64(index))
            queue.arm(node, at: node.deadline, order: queue.takeOrder())
            most = max(most, queue.armedCount)
            queue.disarm(node)
        }
        #expect(most == 1)
        #expect(queue.armedCount == 0)
        queue.checkInvariants()
        queue.end()
    }

    @Test("re-armed 200,000 times among a thousand others, the heap holds one entry for each")
    func boundedByRearming() {
        var queue = TimerQueue<Node>()
        var generator = SeededGenerator(seed: 1)
        let nodes = queue.addThousand()
        for _ in 0..<200_000 {
            let node = nodes[Int(generator.next() % 1000)]
            node.deadline = ns(Int64(generator.next() % 1_000_000))
            queue.arm(node, at: node.deadline, order: queue.takeOrder())
        }
        #expect(queue.armedCount == 1000)
        queue.checkInvariants()
        let next = queue.nextDeadline(in: .default)
        #expect(next == nodes.map(\.deadline).min())
        queue.end()
    }

    @Test("postponed 200,000 times, nothing is added to the heap")
    func boundedByPostponing() {
        var queue = TimerQueue<Node>()
        var generator = SeededGenerator(seed: 2)
        let nodes = queue.addThousand()
        for step in 0..<200_000 {
            let node = nodes[Int(generator.next() % 1000)]
            node.deadline = ns(Int64(1000 + step))
            queue.postpone(node, order: queue.takeOrder())
        }
        #expect(queue.armedCount == 1000)
        queue.checkInvariants()
        let next = queue.nextDeadline(in: .default)
        #expect(next == nodes.map(\.deadline).min())
        queue.checkInvariants()
        for node in nodes {
            queue.unregister(node)
            node.release()
        }
        #expect(queue.armedCount == 0)
        let hasMembers = queue.hasMembers(in: .default)
        #expect(!hasMembers)
    }

    @Test("moved 200,000 times among a thousand others, a call has one entry in the heap")
    func boundedByMoving() {
        var queue = TimerQueue<Node>()
        var generator = SeededGenerator(seed: 3)
        let tokens = (0..<1000).map { _ in queue.addCall(at: ns(0)) {} }
        for _ in 0..<200_000 {
            let isPending = queue.move(
                tokens[Int(generator.next() % 1000)], to: ns(Int64(generator.next() % 1_000_000)))
            #expect(isPending)
        }
        #expect(queue.armedCount == 1000)
        queue.checkInvariants()
        queue.end()
    }

    @Test(
        "added and cancelled in any order, calls are found by their own tokens only",
        arguments: 1...8 as ClosedRange<UInt64>)
    func tokensOfCalls(seed: UInt64) {
        var queue = TimerQueue<Node>()
        var generator = SeededGenerator(seed: seed)
        var pending: [CallToken] = []
        var gone: [CallToken] = []
        for _ in 0..<3000 {
            // Grows to a thousand and shrinks to nothing again, through several chunks.
            if generator.next() % 100 < (gone.count % 3000 < 1000 ? 70 : 35) {
                pending.append(queue.addCall(at: ns(Int64(generator.next() % 50))) {})
            } else if !pending.isEmpty {
                let token = pending.remove(at: Int(generator.next() % UInt64(pending.count)))
                let wasPending = queue.cancel(token) != nil
                #expect(wasPending, "seed \(seed)")
                gone.append(token)
            }
        }
        queue.checkInvariants()
        let found = (pending.filter { queue.isPending($0) }.count, gone.filter { queue.isPending($0) }.count)
        #expect(found == (pending.count, 0), "seed \(seed)")
        for token in gone + pending { _ = queue.cancel(token) }
        #expect(queue.armedCount == 0, "seed \(seed)")
        let isPending = queue.isPending(.none)
        #expect(!isPending)
        queue.end()
    }

    @Test("a block is kept until its call has been made or cancelled, and no longer")
    func keepingBlocks() {
        var queue = TimerQueue<Node>()
        weak var kept: Token?
        func add() -> CallToken {
            let token = Token()
            kept = token
            return queue.addCall(at: ns(1)) { token.touch() }
        }
        let cancelled = add()
        #expect(kept != nil)
        _ = queue.cancel(cancelled)
        #expect(kept == nil)
        _ = add()
        queue.end()
        #expect(kept == nil)
        do {
            var other = TimerQueue<Node>()
            let token = Token()
            kept = token
            _ = other.addCall(at: ns(1)) { token.touch() }
        }
        #expect(kept == nil, "a queue that goes lets go of its blocks")
    }

    @Test("a node is kept while it is in the queue, and no longer")
    func keeping() {
        var queue = TimerQueue<Node>()
        weak var kept: Node?
        do {
            let node = Node(0)
            kept = node
            queue.register(node, inDefault)
            queue.arm(node, at: node.deadline, order: queue.takeOrder())
        }
        #expect(kept != nil)
        queue.end()
        #expect(kept == nil)
    }
}

private let inDefault = Membership.none.joining(.default, common: ModeSet(.default))

private final class Node: TimerQueueNode {
    let number: Int
    var deadline = RunLoop.Instant.distantFuture
    var tolerance = Duration.zero
    var earliest: RunLoop.Instant { deadline - tolerance }

    var queuePlace = TimerQueuePlace.resting
    var hasTolerance = false
    var isRepeating: Bool { number % 2 == 0 }
    var queueIndex: Int32 = -1
    var queueOrder: UInt64 = 0
    var laterOrder: UInt64 = 0
    var queueLane: UInt16 = 0

    init(_ number: Int) {
        self.number = number
    }

    func release() { UnownedReference(self).release() }
}

extension TimerQueue<Node> {
    fileprivate mutating func addCall(at date: RunLoop.Instant, _ block: @escaping () -> Void) -> CallToken {
        add(block, .call, RunLoop.Origin(), .default, common: ModeSet(.default), at: date, until: date)
    }

    /// Releases all nodes.
    fileprivate mutating func end() {
        for node in removeAll().nodes { node.release() }
    }

    /// Adds a thousand nodes that are due one after the other.
    fileprivate mutating func addThousand() -> [Node] {
        let nodes = (0..<1000).map(Node.init)
        for node in nodes {
            node.deadline = ns(Int64(node.number))
            register(node, inDefault)
            arm(node, at: node.deadline, order: takeOrder())
        }
        return nodes
    }
}

private final class Calls {
    var last = 0
}

/// A queue, its model, and the random operations that both go through.
private struct Trial: ~Copyable {
    /// The model's record of a node or a call.
    private struct Entry {
        let item: Item
        let number: Int
        var membership: Membership
        var armed: (deadline: RunLoop.Instant, order: UInt64)?
        /// The time when the node last entered each mode, on the queue's count.
        var joins: [RunLoop.Mode: UInt64] = [:]
        /// The earliest time at which the entry may be called.
        var earliest = RunLoop.Instant.distantFuture

        /// The date in the queue's lists.
        var date: RunLoop.Instant { item.node == nil ? earliest : armed!.deadline }
    }

    private enum Item {
        case node(Node)
        case call(CallToken)

        var node: Node? { if case .node(let node) = self { node } else { nil } }
    }

    var queue = TimerQueue<Node>()
    private var entries: [Entry] = []
    private var common = ModeSet(.default)
    private var generator: SeededGenerator
    private let registerWeight: UInt64
    private var made = 0
    private let calls = Calls()
    private var depth = 0
    private var failure: String?
    private let modes: [RunLoop.Mode] = [.default, .tracking] + (0..<3).map { RunLoop.Mode("model \($0)") }

    init(seed: UInt64, registerWeight: UInt64 = 20) {
        generator = SeededGenerator(seed: seed)
        self.registerWeight = registerWeight
        queue.notesJoins = true
    }

    private mutating func random(_ bound: UInt64) -> Int { Int(generator.next() % bound) }

    private mutating func randomModes() -> RunLoop.Modes {
        var chosen = modes.filter { _ in random(3) == 0 }.map { RunLoop.Modes($0) }
        if random(3) == 0 { chosen.append(.common) }
        return RunLoop.Modes(chosen.isEmpty ? [.default] : chosen)
    }

    // MARK: Operations

    mutating func step() {
        let choice = generator.next() % (80 + registerWeight)
        switch choice {
        case 0..<30: arm()
        case 30..<38: disarm()
        case 38..<52: move()
        case 52..<53: addCommonMode()
        case 53..<70: pass()
        case 70..<80: unregister()
        default: register()
        }
    }

    private mutating func register() {
        let modes = randomModes()
        let membership = Membership.none.joining(modes, common: common)
        made += 1
        if random(2) == 0 { return registerCall(modes, membership) }
        let node = Node(made)
        queue.register(node, membership)
        entries.append(Entry(item: .node(node), number: made, membership: membership))
        if random(4) > 0 { arm(entries.count - 1) }
    }

    private mutating func registerCall(_ modes: RunLoop.Modes, _ membership: Membership) {
        let date = ns(Int64(random(20)))
        let latest = random(3) == 0 ? date + .nanoseconds(random(8)) : date
        let number = made
        let order = queue.nextOrder
        let token = queue.add(
            { [calls] in calls.last = number }, .call, RunLoop.Origin(), modes, common: common, at: date, until: latest)
        entries.append(
            Entry(
                item: .call(token), number: number, membership: membership, armed: (latest, order), earliest: date))
    }

    private mutating func arm() {
        guard !entries.isEmpty else { return }
        arm(random(UInt64(entries.count)))
    }

    private mutating func arm(_ index: Int) {
        // Few dates, so that many are equal.
        let deadline = ns(Int64(random(20)))
        let order = queue.takeOrder()
        let isLater = entries[index].armed.map { deadline >= $0.deadline } ?? false
        switch entries[index].item {
        case .node(let node):
            node.deadline = deadline
            node.tolerance = random(3) == 0 ? .nanoseconds(random(8)) : .zero
            if isLater && random(4) > 0 {
                queue.postpone(node, order: order)
            } else {
                queue.arm(node, at: deadline, order: order)
            }
            entries[index].armed = (deadline, order)
            entries[index].earliest = node.earliest
        case .call(let token):
            if let armed = entries[index].armed, armed.deadline != entries[index].earliest { return }
            let order = queue.nextOrder
            let isPending = queue.move(token, to: deadline)
            if isPending != (entries[index].armed != nil) { failure = "call \(entries[index].number) is \(isPending)" }
            guard isPending else { return }
            entries[index].armed = (deadline, order)
            entries[index].earliest = deadline
        }
    }

    private mutating func disarm() {
        guard !entries.isEmpty else { return }
        let index = random(UInt64(entries.count))
        guard let node = entries[index].item.node else { return }
        queue.disarm(node)
        entries[index].armed = nil
    }

    private mutating func move() {
        guard !entries.isEmpty else { return }
        let index = random(UInt64(entries.count))
        guard let node = entries[index].item.node else { return }
        let old = entries[index].membership
        let joined = old.joining(randomModes(), common: common)
        let left = joined.leaving(randomModes(), common: common)
        let membership = left.isEmpty ? joined : left
        let order = queue.nextOrder
        queue.move(node, to: membership)
        entries[index].membership = membership
        membership.modes.subtracting(old.modes).forEach { entries[index].joins[$0] = order }
    }

    private mutating func addCommonMode() {
        let mode = modes[random(UInt64(modes.count))]
        guard !common.contains(mode) else { return }
        common.insert(mode)
        let order = queue.nextOrder
        queue.addCommonMode(mode)
        for index in entries.indices where entries[index].membership.isCommon {
            if !entries[index].membership.modes.contains(mode) { entries[index].joins[mode] = order }
            entries[index].membership.modes.insert(mode)
        }
    }

    private mutating func unregister() {
        guard !entries.isEmpty else { return }
        let index = random(UInt64(entries.count))
        switch entries[index].item {
        case .node(let node):
            queue.unregister(node)
            node.release()
        case .call(let token):
            let wasPending = queue.cancel(token) != nil
            if wasPending != (entries[index].armed != nil) {
                failure = "call \(entries[index].number) was \(wasPending)"
            }
            // A call under way is removed when it has been made.
            if !wasPending { return }
        }
        entries.remove(at: index)
    }

    /// Fires the due items of a mode, with other operations and nested passes in between.
    private mutating func pass() {
        let mode = modes[random(UInt64(modes.count))]
        let now = ns(Int64(random(25)))
        let mark = queue.beginPass(isOutermost: depth == 0)
        depth += 1
        while true {
            let expected = next(in: mode, at: now, before: mark)
            var item: TimerReference<Node>?
            while item == nil, let lane = queue.dueLane(in: mode, at: now) {
                item = queue.popDue(from: lane, in: mode, at: now, before: mark)?.item
            }
            let begun = item?.call.map { slot in
                let (block, token) = queue.beginCall(slot)
                block()
                return (slot: slot, token: token, number: calls.last)
            }
            let popped = begun?.number ?? item?.node.object.number
            queue.checkInvariants()
            if popped != expected.map({ entries[$0].number }) {
                failure = "popped \(popped as Int?), expected \(expected.map { entries[$0].number } as Int?)"
            }
            guard let expected, failure == nil else { break }
            entries[expected].armed = nil
            for _ in 0..<random(3) {
                if depth < 3 || random(4) > 0 { stepInsidePass() }
                queue.checkInvariants()
            }
            if let begun {
                queue.endCall(begun.slot, begun.token)
                entries.removeAll { $0.number == begun.number }
            }
        }
        depth -= 1
        queue.restore()
    }

    private mutating func stepInsidePass() {
        switch random(12) {
        case 0..<4: arm()
        case 4: disarm()
        case 5..<8: move()
        case 8: addCommonMode()
        case 9: unregister()
        case 10: if depth < 3 { pass() } else { register() }
        default: register()
        }
    }

    // MARK: The model

    private func next(in mode: RunLoop.Mode, at now: RunLoop.Instant, before mark: UInt64) -> Int? {
        // An item that may fire only because of its tolerance does not overtake one that may not fire yet.
        candidates(in: mode).sorted { isBefore($0, $1) }
            .prefix { entries[$0].earliest <= now }
            .first { entries[$0].armed!.order < mark && entries[$0].joins[mode, default: 0] < mark }
    }

    private func candidates(in mode: RunLoop.Mode) -> [Int] {
        entries.indices.filter { entries[$0].armed != nil && entries[$0].membership.modes.contains(mode) }
    }

    private func isBefore(_ left: Int, _ right: Int) -> Bool {
        let (left, right) = (entries[left].armed!, entries[right].armed!)
        return (left.deadline, left.order) < (right.deadline, right.order)
    }

    /// Describes where queue and model disagree; `nil` if they agree.
    mutating func difference() -> String? {
        if let failure { return failure }
        let listed = queue.items()
        for mode in modes {
            let armed = candidates(in: mode).sorted { isBefore($0, $1) }
            let expected = armed.first.map { entries[$0].armed!.deadline }
            let found = queue.nextDeadline(in: mode)
            if found != expected { return "the next deadline in \(mode) is \(found as Any), not \(expected as Any)" }
            let members = entries.filter { $0.membership.modes.contains(mode) }
            if queue.hasMembers(in: mode) == members.isEmpty { return "\(mode) has \(members.count) members" }
            let items = listed.filter { queue.membership(of: $0).contains(mode) }.map { number(of: $0) }
            // Ordered by their dates, without tolerances.
            let dates = armed.map { entries[$0] }.sorted { left, right in
                (left.date, left.armed!.order) < (right.date, right.armed!.order)
            }
            if Array(items.prefix(armed.count)) != dates.map(\.number) {
                return "the items of \(mode) are in another order"
            }
            if items.count != members.count { return "\(mode) lists \(items.count) items of \(members.count)" }
        }
        for entry in entries {
            guard let node = entry.item.node, queue.membership(of: node) != entry.membership else { continue }
            return "node \(entry.number) is in other modes"
        }
        return nil
    }

    private func number(of item: TimerReference<Node>) -> Int {
        guard let slot = item.call else { return item.node.object.number }
        return entries.first { entry in
            if case .call(let token) = entry.item { token.version == slot.pointee.version } else { false }
        }!.number
    }
}
