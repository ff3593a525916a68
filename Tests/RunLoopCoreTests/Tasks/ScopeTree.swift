@_spi(Ports) import RunLoopKit
import RunLoopSimulation
import TestSupport

/// A piece of a program of nested scopes. Each has a number, by which its end is logged.
struct ScopeNode {
    let number: Int
    let kind: Kind

    indirect enum Kind {
        case sleep(Duration)
        /// Work that occupies the thread.
        case compute(Duration)
        /// A wait that ignores its cancellation.
        case rest(Duration)
        case fail
        case sequence([ScopeNode])
        /// A node that continues after any error.
        case attempt(ScopeNode)
        case timeout(Duration, ScopeNode)
        /// A scope whose deadline may lie in the past.
        case deadline(RunLoop.Instant, ScopeNode)
        case shield(Duration, ScopeNode)
        case tasks(Duration?, ScopeNode)
        // Within the innermost scope with tasks:
        case start(ScopeNode)
        /// A wait for the value of one of the tasks started before the waiting one.
        case value(Int)
        case cancelTask(Int)
        case cancel
        case move(Duration)
    }
}

/// The end of a node, as text, and its time.
struct ScopeEnd: Equatable, CustomStringConvertible {
    var number: Int
    var outcome: String
    var date: RunLoop.Instant

    var description: String { "\(number) \(outcome) at \(date)" }
}

/// A generator of programs, in which half of the dates coincide with other events.
struct ScopeTrees {
    var generator: SeededGenerator
    private var count = 0

    init(seed: UInt64) {
        generator = SeededGenerator(seed: seed)
    }

    mutating func duration() -> Duration {
        Bool.random(using: &generator)
            ? .seconds(Int.random(in: 1...8, using: &generator))
            : .nanoseconds(Int64.random(in: 1...8_000_000_000, using: &generator))
    }

    private mutating func chance(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &generator) == 0 }

    mutating func tree() -> ScopeNode { sequence(of: 4...8, depth: 6, amongTasks: false) }

    private mutating func node(depth: Int, amongTasks: Bool) -> ScopeNode {
        count += 1
        return ScopeNode(number: count, kind: kind(depth: depth, amongTasks: amongTasks))
    }

    private mutating func sequence(of lengths: ClosedRange<Int>, depth: Int, amongTasks: Bool) -> ScopeNode {
        count += 1
        let (number, length) = (count, Int.random(in: lengths, using: &generator))
        return ScopeNode(
            number: number, kind: .sequence((0..<length).map { _ in node(depth: depth - 1, amongTasks: amongTasks) }))
    }

    private mutating func kind(depth: Int, amongTasks: Bool) -> ScopeNode.Kind {
        if amongTasks && chance(3) { return kindAmongTasks(depth: depth) }
        switch Int.random(in: 0..<(depth == 0 ? 8 : 24), using: &generator) {
        case 0, 1, 2: return .sleep(chance(5) ? .zero : duration())
        case 3, 4: return .compute(chance(3) ? .milliseconds(1) : duration())
        case 5, 6: return .rest(duration())
        case 7: return .fail
        case 8, 9, 10, 11: return sequence(of: 2...4, depth: depth, amongTasks: amongTasks).kind
        case 12, 13, 14, 15, 16: return .attempt(node(depth: depth - 1, amongTasks: amongTasks))
        case 17, 18: return .timeout(duration(), node(depth: depth - 1, amongTasks: amongTasks))
        case 19:
            return .deadline(seconds(0) + duration(), node(depth: depth - 1, amongTasks: amongTasks))
        case 20: return .shield(duration(), node(depth: depth - 1, amongTasks: amongTasks))
        default: return .tasks(chance(2) ? duration() : nil, sequence(of: 1...5, depth: depth, amongTasks: true))
        }
    }

    private mutating func kindAmongTasks(depth: Int) -> ScopeNode.Kind {
        switch Int.random(in: 0..<(depth == 0 ? 6 : 12), using: &generator) {
        case 0, 1, 2: .value(Int.random(in: 0..<10, using: &generator))
        case 3: .cancelTask(Int.random(in: 0..<10, using: &generator))
        case 4: .cancel
        case 5: .move(duration())
        default: .start(node(depth: depth - 1, amongTasks: true))
        }
    }
}

/// Performs a program with the library.
final class ScopeProgram {
    private let simulation: Simulation
    private let loop: RunLoop
    private(set) var ends: [ScopeEnd] = []

    /// The innermost scope with tasks, from a node's point of view.
    private final class Group {
        let tasks: RunLoop.Tasks
        var children: [RunLoop.Tasks.Child<Void>] = []

        init(_ tasks: RunLoop.Tasks) {
            self.tasks = tasks
        }
    }

    private struct Place {
        var group: Group
        /// The number of tasks started before this one.
        var seen: Int
    }

    private init(_ simulation: Simulation) {
        (self.simulation, loop) = (simulation, simulation.loop)
    }

    /// - Parameter date: the time when the caller is cancelled.
    static func ends(of node: ScopeNode, cancelledAt date: RunLoop.Instant) -> (ends: [ScopeEnd], isDone: Bool) {
        withSimulation { simulation in
            let program = ScopeProgram(simulation)
            let task = simulation.loop.task { try await program.perform(node, nil) }
            if date < .distantFuture { simulation.loop.perform(at: date) { task.cancel() } }
            let standing = simulation.runUntilIdle()
            simulation.loop.checkInvariants()
            return (program.ends, standing == .done)
        }
    }

    private func text(of error: any Error) -> String {
        switch error {
        case let error as RunLoop.TimeoutError: "timeout \(error.deadline) (\(text(of: error.underlying)))"
        case let error as Refusal: "failed \(error.number)"
        case is CancellationError: "cancelled"
        default: "\(error)"
        }
    }

    private nonisolated(nonsending) func perform(_ node: ScopeNode, _ place: Place?) async throws {
        do { try await perform(node.kind, node.number, place) } catch {
            ends.append(ScopeEnd(number: node.number, outcome: text(of: error), date: loop.now))
            throw error
        }
        ends.append(ScopeEnd(number: node.number, outcome: "done", date: loop.now))
    }

    private nonisolated(nonsending) func perform(_ kind: ScopeNode.Kind, _ number: Int, _ place: Place?) async throws {
        switch kind {
        case .sleep(let duration): try await loop.clock.sleep(for: duration)
        case .compute(let duration): simulation.spend(duration)
        case .rest(let duration): await rest(duration, on: loop)
        case .fail: throw Refusal(number: number)
        case .sequence(let nodes): for node in nodes { try await perform(node, place) }
        case .attempt(let node): try? await perform(node, place)
        case .timeout(let limit, let node): try await loop.withTimeout(limit) { try await self.perform(node, place) }
        case .deadline(let date, let node): try await loop.withDeadline(date) { try await self.perform(node, place) }
        case .shield(let limit, let node): try await loop.withShield(limit) { try await self.perform(node, place) }
        case .tasks(let limit, let node):
            let deadline = limit.map { loop.now + $0 } ?? .distantFuture
            try await loop.withTasks(until: deadline) { tasks in
                try await self.perform(node, Place(group: Group(tasks), seen: .max))
            }
        case .start, .value, .cancelTask, .cancel, .move: try await perform(kind, among: place!)
        }
    }

    private nonisolated(nonsending) func perform(_ kind: ScopeNode.Kind, among place: Place) async throws {
        let group = place.group
        switch kind {
        case .start(let node):
            let own = Place(group: group, seen: group.children.count)
            group.children.append(group.tasks.start { try await self.perform(node, own) })
        case .value(let choice):
            let seen = min(place.seen, group.children.count)
            if seen > 0 { try await group.children[choice % seen].value }
        case .cancelTask(let choice):
            if let count = Optional(group.children.count), count > 0 { group.children[choice % count].cancel() }
        case .cancel: group.tasks.cancel()
        case .move(let duration): group.tasks.deadline = loop.now + duration
        default: break
        }
    }
}
