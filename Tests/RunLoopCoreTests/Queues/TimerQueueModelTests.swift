import RunLoopKit
import TestSupport
import Testing

@testable import RunLoopCore

/// The queue against the simplest thing that can do the same: an array that is searched from end to end.
@Suite("The timer queue")
struct TimerQueueModelTests {
    @Test("random operations agree with an array that is searched", arguments: 1...24 as ClosedRange<UInt64>)
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

    @Test("many nodes of few modes agree with an array that is searched", arguments: [100, 200] as [UInt64])
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
    var queueIndex: Int32 = -1
    var queueOrder: UInt64 = 0
    var laneAndLaterOrder: UInt64 = 0

    init(_ number: Int) {
        self.number = number
    }

    func release() { UnownedReference(self).release() }
}

extension TimerQueue<Node> {
    /// Lets go of all nodes.
    fileprivate mutating func end() {
        for node in removeAll() { node.release() }
    }

    /// A thousand nodes that are due one after the other.
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

/// A queue, its model, and the random operations that both go through.
private struct Trial: ~Copyable {
    /// What the model knows of a node.
    private struct Entry {
        let node: Node
        var membership: Membership
        var armed: (deadline: RunLoop.Instant, order: UInt64)?
        /// When the node last came to a mode, on the queue's count.
        var joins: [RunLoop.Mode: UInt64] = [:]
    }

    var queue = TimerQueue<Node>()
    private var entries: [Entry] = []
    private var common = ModeSet(.default)
    private var generator: SeededGenerator
    private let registerWeight: UInt64
    private var made = 0
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
        let membership = Membership.none.joining(randomModes(), common: common)
        made += 1
        let node = Node(made)
        queue.register(node, membership)
        entries.append(Entry(node: node, membership: membership))
        if random(4) > 0 { arm(entries.count - 1) }
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
        let node = entries[index].node
        node.deadline = deadline
        node.tolerance = random(3) == 0 ? .nanoseconds(random(8)) : .zero
        if isLater && random(4) > 0 {
            queue.postpone(node, order: order)
        } else {
            queue.arm(node, at: deadline, order: order)
        }
        entries[index].armed = (deadline, order)
    }

    private mutating func disarm() {
        guard !entries.isEmpty else { return }
        let index = random(UInt64(entries.count))
        queue.disarm(entries[index].node)
        entries[index].armed = nil
    }

    private mutating func move() {
        guard !entries.isEmpty else { return }
        let index = random(UInt64(entries.count))
        let old = entries[index].membership
        let joined = old.joining(randomModes(), common: common)
        let left = joined.leaving(randomModes(), common: common)
        let membership = left.isEmpty ? joined : left
        let order = queue.nextOrder
        queue.move(entries[index].node, to: membership)
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
        let entry = entries.remove(at: random(UInt64(entries.count)))
        queue.unregister(entry.node)
        entry.node.release()
    }

    /// Fires what is due in a mode, with other operations and nested passes in between.
    private mutating func pass() {
        let mode = modes[random(UInt64(modes.count))]
        let now = ns(Int64(random(25)))
        let mark = queue.beginPass(isOutermost: depth == 0)
        depth += 1
        while true {
            let expected = next(in: mode, at: now, before: mark)
            let popped = queue.popDue(in: mode, at: now, before: mark).map(\.node.object.number)
            queue.checkInvariants()
            if popped != expected.map({ entries[$0].node.number }) {
                failure = "popped \(popped as Int?), expected \(expected.map { entries[$0].node.number } as Int?)"
            }
            guard let expected, failure == nil else { break }
            entries[expected].armed = nil
            for _ in 0..<random(3) {
                if depth < 3 || random(4) > 0 { stepInsidePass() }
                queue.checkInvariants()
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
        // What may come now only because of its tolerance does not overtake what may not come yet.
        candidates(in: mode).sorted { isBefore($0, $1) }
            .prefix { entries[$0].node.earliest <= now }
            .first { entries[$0].armed!.order < mark && entries[$0].joins[mode, default: 0] < mark }
    }

    private func candidates(in mode: RunLoop.Mode) -> [Int] {
        entries.indices.filter { entries[$0].armed != nil && entries[$0].membership.modes.contains(mode) }
    }

    private func isBefore(_ left: Int, _ right: Int) -> Bool {
        let (left, right) = (entries[left].armed!, entries[right].armed!)
        return (left.deadline, left.order) < (right.deadline, right.order)
    }

    /// Where queue and model disagree, if they do.
    mutating func difference() -> String? {
        if let failure { return failure }
        let listed = queue.nodes()
        for mode in modes {
            let armed = candidates(in: mode).sorted { isBefore($0, $1) }
            let expected = armed.first.map { entries[$0].armed!.deadline }
            let found = queue.nextDeadline(in: mode)
            if found != expected { return "the next deadline in \(mode) is \(found as Any), not \(expected as Any)" }
            let members = entries.filter { $0.membership.modes.contains(mode) }
            if queue.hasMembers(in: mode) == members.isEmpty { return "\(mode) has \(members.count) members" }
            let nodes = listed.filter { queue.membership(of: $0).contains(mode) }.map(\.number)
            if Array(nodes.prefix(armed.count)) != armed.map({ entries[$0].node.number }) {
                return "the nodes of \(mode) are in another order"
            }
            if nodes.count != members.count { return "\(mode) lists \(nodes.count) nodes of \(members.count)" }
        }
        for entry in entries where queue.membership(of: entry.node) != entry.membership {
            return "node \(entry.node.number) is in other modes"
        }
        return nil
    }
}
