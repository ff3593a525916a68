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
                return
            }
        }
    }

    @Test("many clients of few modes agree with an array that is searched", arguments: [100, 200] as [UInt64])
    func manyClients(seed: UInt64) {
        var trial = Trial(seed: seed, registerWeight: 60)
        for step in 1...400 {
            trial.step()
            trial.queue.checkInvariants()
            if let difference = trial.difference() {
                Issue.record("seed \(seed), step \(step): \(difference)")
                return
            }
        }
    }

    @Test("armed and disarmed a million times, the heap stays small")
    func boundedByDisarming() {
        let queue = TimerQueue<Client>()
        let client = Client(0)
        var slot = queue.register(client, Membership.none.joining(.default, common: ModeSet(.default)))
        var most = 0
        for index in 0..<1_000_000 {
            queue.arm(client, &slot, at: ns(Int64(index)))
            slot = queue.disarm(slot)
            most = max(most, queue.heapEntries)
        }
        #expect(most <= 66)
        queue.checkInvariants()
    }

    @Test("re-armed a million times among a thousand others, the heap holds at most twice the living and 64")
    func boundedByRearming() {
        let queue = TimerQueue<Client>()
        var generator = SeededGenerator(seed: 1)
        let membership = Membership.none.joining(.default, common: ModeSet(.default))
        let clients = (0..<1000).map(Client.init)
        var slots = clients.map { queue.register($0, membership) }
        for index in slots.indices { queue.arm(clients[index], &slots[index], at: ns(0)) }
        var most = 0
        for _ in 0..<1_000_000 {
            let index = Int(generator.next() % 1000)
            queue.arm(clients[index], &slots[index], at: ns(Int64(generator.next() % 1_000_000)))
            most = max(most, queue.heapEntries)
        }
        #expect(most <= 2064)
        queue.checkInvariants()
    }

    @Test("put off a million times, nothing is added to the heap, and memory goes back when all have gone")
    func boundedByPuttingOff() {
        let queue = TimerQueue<Client>()
        var generator = SeededGenerator(seed: 2)
        let membership = Membership.none.joining(.default, common: ModeSet(.default))
        let clients = (0..<1000).map(Client.init)
        var slots = clients.map { queue.register($0, membership) }
        for index in slots.indices { queue.arm(clients[index], &slots[index], at: ns(Int64(index))) }
        for step in 0..<1_000_000 {
            let index = Int(generator.next() % 1000)
            clients[index].deadline = ns(Int64(1000 + step))
            queue.putOff(slots[index], order: queue.takeOrder())
        }
        #expect(queue.heapEntries == 1000)
        queue.checkInvariants()
        #expect(queue.nextDeadline(in: .default) == clients.map(\.deadline).min())
        queue.checkInvariants()
        for slot in slots { queue.unregister(slot) }
        #expect(queue.heapEntries == 0)
    }

    @Test("registered and unregistered a million times, slots and heap are reused")
    func boundedByUnregistering() {
        let queue = TimerQueue<Client>()
        let client = Client(0)
        let membership = Membership.none.joining(.default, common: ModeSet(.default))
        var (most, highest) = (0, TimerQueue<Client>.SlotIndex(0))
        for index in 0..<1_000_000 {
            var slot = queue.register(client, membership)
            queue.arm(client, &slot, at: ns(Int64(1_000_000 - index)))
            queue.unregister(slot)
            most = max(most, queue.heapEntries)
            highest = max(highest, slot)
        }
        #expect(most <= 66)
        #expect(highest == 0)
        #expect(!queue.hasMembers(in: .default))
        queue.checkInvariants()
    }
}

private final class Client: TimerQueueClient {
    let number: Int
    var deadline = RunLoop.Instant.distantFuture

    init(_ number: Int) {
        self.number = number
    }
}

extension TimerQueue<Client> {
    /// Arms a client for a date, wherever it is now.
    fileprivate func arm(_ client: Client, _ slot: inout SlotIndex, at deadline: RunLoop.Instant) {
        client.deadline = deadline
        slot = arm(slot, at: deadline, order: takeOrder())
    }
}

/// A queue, its model, and the random operations that both go through.
private struct Trial {
    /// What the model knows of a client.
    private struct Entry {
        let client: Client
        var slot: TimerQueue<Client>.SlotIndex
        var membership: Membership
        var armed: (deadline: RunLoop.Instant, order: UInt64)?
        /// When the client last came to a mode, on the queue's count.
        var joins: [RunLoop.Mode: UInt64] = [:]
    }

    let queue = TimerQueue<Client>()
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
        let client = Client(made)
        entries.append(Entry(client: client, slot: queue.register(client, membership), membership: membership))
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
        let isLater = entries[index].armed.map { deadline > $0.deadline } ?? false
        entries[index].client.deadline = deadline
        if isLater && random(4) > 0 {
            queue.putOff(entries[index].slot, order: order)
        } else {
            entries[index].slot = queue.arm(entries[index].slot, at: deadline, order: order)
        }
        entries[index].armed = (deadline, order)
    }

    private mutating func disarm() {
        guard !entries.isEmpty else { return }
        let index = random(UInt64(entries.count))
        entries[index].slot = queue.disarm(entries[index].slot)
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
        entries[index].slot = queue.move(entries[index].slot, to: membership)
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
        queue.unregister(entry.slot)
    }

    /// Fires what is due in a mode, with other operations and nested passes in between.
    private mutating func pass() {
        let mode = modes[random(UInt64(modes.count))]
        let now = ns(Int64(random(25)))
        let mark = queue.beginPass(isOutermost: depth == 0)
        depth += 1
        while true {
            let expected = next(in: mode, at: now, before: mark)
            let popped = queue.popDue(in: mode, at: now, before: mark).map(\.client.number)
            queue.checkInvariants()
            if popped != expected.map({ entries[$0].client.number }) {
                failure = "popped \(popped as Int?), expected \(expected.map { entries[$0].client.number } as Int?)"
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
        candidates(in: mode)
            .filter { index in
                let (deadline, order) = entries[index].armed!
                return deadline <= now && order < mark && entries[index].joins[mode, default: 0] < mark
            }
            .min { isBefore($0, $1) }
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
        let listed = queue.clients()
        for mode in modes {
            let armed = candidates(in: mode).sorted { isBefore($0, $1) }
            let expected = armed.first.map { entries[$0].armed!.deadline }
            let found = queue.nextDeadline(in: mode)
            if found != expected { return "the next deadline in \(mode) is \(found as Any), not \(expected as Any)" }
            let members = entries.filter { $0.membership.modes.contains(mode) }
            if queue.hasMembers(in: mode) == members.isEmpty { return "\(mode) has \(members.count) members" }
            let clients = listed.filter { $0.membership.contains(mode) }.map(\.client.number)
            if Array(clients.prefix(armed.count)) != armed.map({ entries[$0].client.number }) {
                return "the clients of \(mode) are in another order"
            }
            if clients.count != members.count { return "\(mode) lists \(clients.count) clients of \(members.count)" }
        }
        for entry in entries where queue.membership(of: entry.slot) != entry.membership {
            return "client \(entry.client.number) is in other modes"
        }
        return nil
    }
}
