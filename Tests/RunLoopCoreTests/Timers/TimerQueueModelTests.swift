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

    @Test("many clients of few modes agree with an array that is searched", arguments: [100, 200] as [UInt64])
    func manyClients(seed: UInt64) {
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

    @Test("armed and disarmed a million times, the heap stays small")
    func boundedByDisarming() {
        let owner = Owner()
        defer { withExtendedLifetime(owner) {} }
        var queue = TimerQueue<Client>()
        let client = owner.client(0)
        queue.register(client, inDefault)
        var most = 0
        for index in 0..<1_000_000 {
            client.deadline = ns(Int64(index))
            queue.arm(client, at: client.deadline, order: queue.takeOrder())
            most = max(most, queue.armedCount)
            queue.disarm(client)
        }
        #expect(most == 1)
        #expect(queue.armedCount == 0)
        queue.checkInvariants()
        queue.end()
    }

    @Test("re-armed a million times among a thousand others, the heap holds one entry for each")
    func boundedByRearming() {
        let owner = Owner()
        defer { withExtendedLifetime(owner) {} }
        var queue = TimerQueue<Client>()
        var generator = SeededGenerator(seed: 1)
        let clients = queue.addThousand(of: owner)
        for _ in 0..<1_000_000 {
            let client = clients[Int(generator.next() % 1000)]
            client.deadline = ns(Int64(generator.next() % 1_000_000))
            queue.arm(client, at: client.deadline, order: queue.takeOrder())
        }
        #expect(queue.armedCount == 1000)
        queue.checkInvariants()
        let next = queue.nextDeadline(in: .default)
        #expect(next == clients.map(\.deadline).min())
        queue.end()
    }

    @Test("put off a million times, nothing is added to the heap")
    func boundedByPuttingOff() {
        let owner = Owner()
        defer { withExtendedLifetime(owner) {} }
        var queue = TimerQueue<Client>()
        var generator = SeededGenerator(seed: 2)
        let clients = queue.addThousand(of: owner)
        for step in 0..<1_000_000 {
            let client = clients[Int(generator.next() % 1000)]
            client.deadline = ns(Int64(1000 + step))
            queue.putOff(client, order: queue.takeOrder())
        }
        #expect(queue.armedCount == 1000)
        queue.checkInvariants()
        let next = queue.nextDeadline(in: .default)
        #expect(next == clients.map(\.deadline).min())
        queue.checkInvariants()
        for client in clients {
            queue.unregister(client)
            client.release()
        }
        #expect(queue.armedCount == 0)
        let hasMembers = queue.hasMembers(in: .default)
        #expect(!hasMembers)
    }

    @Test("a client is kept while it is in the queue, and no longer")
    func keeping() {
        var queue = TimerQueue<Client>()
        weak var state: Client.State?
        do {
            let client = Client(0)
            state = client.state.takeUnretainedValue()
            queue.register(client, inDefault)
            queue.arm(client, at: client.deadline, order: queue.takeOrder())
            client.release()
        }
        #expect(state != nil)
        queue.end()
        #expect(state == nil)
    }
}

private let inDefault = Membership.none.joining(.default, common: ModeSet(.default))

/// A client whose first reference its maker lets go of.
private struct Client: TimerQueueClient {
    final class State {
        let number: Int
        var deadline = RunLoop.Instant.distantFuture
        var tolerance = Duration.zero
        var link = TimerQueueLink()

        init(_ number: Int) {
            self.number = number
        }
    }

    let state: Unmanaged<State>

    init(_ number: Int) { state = .passRetained(State(number)) }

    var object: State { state.takeUnretainedValue() }
    var number: Int { object.number }
    var deadline: RunLoop.Instant {
        get { object.deadline }
        nonmutating set { object.deadline = newValue }
    }
    var earliest: RunLoop.Instant { deadline - object.tolerance }
    var identity: UnsafeRawPointer { UnsafeRawPointer(state.toOpaque()) }

    func withLink<Result>(_ body: (inout TimerQueueLink) -> Result) -> Result { body(&object.link) }
    func retain() { _ = state.retain() }
    func release() { state.release() }
    static func == (left: Client, right: Client) -> Bool { left.identity == right.identity }
}

/// Keeps clients until it goes itself.
private final class Owner {
    private var clients: [Client] = []

    func client(_ number: Int) -> Client {
        clients.append(Client(number))
        return clients.last!
    }

    deinit {
        for client in clients { client.release() }
    }
}

extension TimerQueue<Client> {
    /// Lets go of all clients.
    fileprivate mutating func end() {
        for client in removeAll() { client.release() }
    }

    /// A thousand clients that are due one after the other.
    fileprivate mutating func addThousand(of owner: Owner) -> [Client] {
        let clients = (0..<1000).map(owner.client)
        for client in clients {
            client.deadline = ns(Int64(client.number))
            register(client, inDefault)
            arm(client, at: client.deadline, order: takeOrder())
        }
        return clients
    }
}

/// A queue, its model, and the random operations that both go through.
private struct Trial: ~Copyable {
    /// What the model knows of a client.
    private struct Entry {
        let client: Client
        var membership: Membership
        var armed: (deadline: RunLoop.Instant, order: UInt64)?
        /// When the client last came to a mode, on the queue's count.
        var joins: [RunLoop.Mode: UInt64] = [:]
    }

    var queue = TimerQueue<Client>()
    private let owner = Owner()
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
        let client = owner.client(made)
        queue.register(client, membership)
        entries.append(Entry(client: client, membership: membership))
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
        let client = entries[index].client
        client.deadline = deadline
        client.object.tolerance = random(3) == 0 ? .nanoseconds(random(8)) : .zero
        if isLater && random(4) > 0 {
            queue.putOff(client, order: order)
        } else {
            queue.arm(client, at: deadline, order: order)
        }
        entries[index].armed = (deadline, order)
    }

    private mutating func disarm() {
        guard !entries.isEmpty else { return }
        let index = random(UInt64(entries.count))
        queue.disarm(entries[index].client)
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
        queue.move(entries[index].client, to: membership)
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
        queue.unregister(entry.client)
        entry.client.release()
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
        // What may come now only because of its tolerance does not overtake what may not come yet.
        candidates(in: mode).sorted { isBefore($0, $1) }
            .prefix { entries[$0].client.earliest <= now }
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
        for entry in entries where queue.membership(of: entry.client) != entry.membership {
            return "client \(entry.client.number) is in other modes"
        }
        return nil
    }
}
