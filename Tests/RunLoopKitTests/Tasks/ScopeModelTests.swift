import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

/// A program of nested scopes.
private indirect enum Node {
    case sleep(Duration)
    /// A wait that ignores its cancellation.
    case rest(Duration)
    case fail(Int)
    case sequence([Node])
    case timeout(Duration, Node)
    /// The same, and continues after its own deadline.
    case attempt(Duration, Node)
    /// A scope with a body and tasks, which are all started at once.
    case tasks(Node, [Node])
    /// Cancels the scope that it is a task of, after a while.
    case cancel(Duration)
}

private enum Outcome: Equatable, CustomStringConvertible {
    case done, cancelled
    case timeout(RunLoop.Instant)
    case failed(Int)

    init(_ error: any Error) {
        switch error {
        case let error as RunLoop.TimeoutError: self = .timeout(error.deadline)
        case let error as Refusal: self = .failed(error.number)
        default: self = .cancelled
        }
    }

    var isError: Bool { self != .done && self != .cancelled }

    var description: String {
        switch self {
        case .done: "done"
        case .cancelled: "cancelled"
        case .timeout(let deadline): "timeout \(deadline)"
        case .failed(let number): "failed \(number)"
        }
    }
}

/// The rules as they are written: each node is asked when and how it ends, given when it begins and when
/// it is cancelled from outside.
private struct Model {
    typealias End = (date: RunLoop.Instant, outcome: Outcome)

    func end(of node: Node, from start: RunLoop.Instant, cancelledAt date: RunLoop.Instant) -> End {
        switch node {
        case .sleep(let duration), .cancel(let duration):
            let end = start + duration
            return date < end ? (max(date, start), .cancelled) : (end, .done)
        case .rest(let duration): return (start + duration, .done)
        case .fail(let number): return (start, .failed(number))
        case .sequence(let nodes):
            var now = start
            for node in nodes {
                let end = end(of: node, from: now, cancelledAt: date)
                guard end.outcome == .done else { return end }
                now = end.date
            }
            return (now, .done)
        case .timeout(let duration, let node): return limited(node, from: start, until: start + duration, date)
        case .attempt(let duration, let node):
            let end = limited(node, from: start, until: start + duration, date)
            return end.outcome == .timeout(start + duration) ? (end.date, .done) : end
        case .tasks(let body, let tasks): return together([body] + tasks, from: start, date)
        }
    }

    private func limited(
        _ node: Node, from start: RunLoop.Instant, until deadline: RunLoop.Instant, _ date: RunLoop.Instant
    ) -> End {
        let end = end(of: node, from: start, cancelledAt: min(date, deadline))
        let passedFirst = deadline <= end.date && deadline < date && date > end.date
        return passedFirst && end.outcome != .done ? (end.date, .timeout(deadline)) : end
    }

    private func earliest(in ends: [End], where isMeant: (End) -> Bool) -> Int? {
        ends.indices.filter { isMeant(ends[$0]) }.min { ends[$0].date < ends[$1].date }
    }

    private func together(_ nodes: [Node], from start: RunLoop.Instant, _ date: RunLoop.Instant) -> End {
        var ends = nodes.map { end(of: $0, from: start, cancelledAt: date) }
        var (cancel, isProgram) = (date, false)
        // A scope in a task that the program cancels fails the task, if nothing has cancelled that.
        var failure = earliest(in: ends) { $0.outcome.isError || $0.outcome == .cancelled && $0.date < date }
        if let failure { cancel = min(cancel, ends[failure].date) }
        for (node, end) in zip(nodes, ends) {
            if case .cancel = node, end.outcome == .done, end.date < cancel { (cancel, isProgram) = (end.date, true) }
        }
        ends = ends.indices.map { index in
            ends[index].date <= cancel ? ends[index] : end(of: nodes[index], from: start, cancelledAt: cancel)
        }
        if isProgram || cancel == date { failure = earliest(in: ends) { $0.outcome.isError } }
        let last = ends.map(\.date).max()!
        if let failure { return (last, ends[failure].outcome) }
        if ends[0].outcome == .cancelled { return (last, .cancelled) }
        let isCut = ends.contains { $0.outcome == .cancelled }
        return (last, isCut && !isProgram ? .cancelled : .done)
    }
}

/// The same with the library.
private nonisolated(nonsending) func perform(_ node: Node, on loop: RunLoop, in tasks: RunLoop.Tasks?) async throws {
    switch node {
    case .sleep(let duration): try await loop.clock.sleep(for: duration)
    case .cancel(let duration):
        try await loop.clock.sleep(for: duration)
        tasks?.cancel()
    case .rest(let duration): await rest(duration, on: loop)
    case .fail(let number): throw Refusal(number: number)
    case .sequence(let nodes): for node in nodes { try await perform(node, on: loop, in: nil) }
    case .timeout(let duration, let node):
        try await loop.withTimeout(duration) { try await perform(node, on: loop, in: nil) }
    case .attempt(let duration, let node):
        let deadline = loop.now + duration
        do { try await loop.withTimeout(duration) { try await perform(node, on: loop, in: nil) } } catch {
            guard let error = error as? RunLoop.TimeoutError, error.deadline == deadline else { throw error }
        }
    case .tasks(let body, let nodes):
        try await loop.withTasks { tasks in
            for node in nodes { tasks.start { try await perform(node, on: loop, in: tasks) } }
            try await perform(body, on: loop, in: tasks)
        }
    }
}

@Suite("Scopes of tasks and a model")
struct ScopeModelTests {
    /// Dates of a program are never equal by chance: no two scopes end at the same time for different reasons.
    private struct Programs {
        var generator: SeededGenerator
        var count = 0

        mutating func duration() -> Duration { .nanoseconds(Int64.random(in: 1...100_000_000_000, using: &generator)) }

        mutating func node(depth: Int) -> Node {
            count += 1
            switch Int.random(in: 0..<(depth == 0 ? 5 : 12), using: &generator) {
            case 0, 1, 2: return .sleep(duration())
            case 3: return .rest(duration())
            case 4: return .sequence([.sleep(duration()), .fail(count)])
            case 5: return .sequence((0..<Int.random(in: 1...3, using: &generator)).map { _ in node(depth: depth - 1) })
            case 6, 7: return .timeout(duration(), node(depth: depth - 1))
            case 8: return .attempt(duration(), node(depth: depth - 1))
            default:
                var tasks = (0..<Int.random(in: 0...3, using: &generator)).map { _ in node(depth: depth - 1) }
                if Int.random(in: 0..<4, using: &generator) == 0 { tasks.append(.cancel(duration())) }
                return .tasks(node(depth: depth - 1), tasks)
            }
        }
    }

    @Test("random programs of nested scopes end as the model says, and leave nothing behind")
    func model() {
        for seed in UInt64(0)..<UInt64(amount(of: "SCOPE_PROGRAMS", usually: 1000)) {
            var programs = Programs(generator: SeededGenerator(seed: seed))
            let program = programs.node(depth: 5)
            let isCancelled = Bool.random(using: &programs.generator)
            let date = isCancelled ? seconds(0) + programs.duration() : .distantFuture
            withSimulation { simulation in
                let loop = simulation.loop
                var end: Model.End?
                let task = loop.task {
                    try await perform(program, on: loop, in: nil)
                } then: {
                    switch $0 {
                    case .success: end = (loop.now, .done)
                    case .failure(let error): end = (loop.now, Outcome(error))
                    }
                }
                if isCancelled { loop.perform(at: date) { task.cancel() } }
                #expect(simulation.runUntilIdle() == .done, "seed \(seed)")
                let expected = Model().end(of: program, from: seconds(0), cancelledAt: date)
                #expect(
                    end?.date == expected.date && end?.outcome == expected.outcome,
                    "seed \(seed): \(String(describing: end)), not \(expected), of \(program), cancelled at \(date)")
            }
        }
    }
}
