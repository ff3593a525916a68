import RunLoopKit
import TestSupport
import Testing

@testable import RunLoopExploration
@_spi(Ports) @testable import RunLoopSimulation

private struct Found: Error {}

/// Returns the number of the first schedule in which a condition holds; `nil` if it holds in none.
private func firstSchedule(
    of schedules: Int, with strategies: Set<Exploration.Strategies>, seed: UInt64 = 0,
    in program: (Simulation) -> Bool
) -> Int? {
    let exploration = Exploration(schedules: schedules, seed: seed, strategies: strategies)
    let result = exploration.run { simulation in if program(simulation) { throw Found() } }
    guard case .failed(let finding) = result else { return nil }
    return finding.schedules
}

/// Starts tasks of the given numbers of steps, and returns the order of the steps.
private func order(_ simulation: Simulation, of tasks: [String: Int]) -> String {
    var order = ""
    for (name, steps) in tasks.sorted(by: { $0.key < $1.key }) {
        simulation.loop.task(name: name) {
            for _ in 0..<steps {
                order += name
                await Task.yield()
            }
        }
    }
    simulation.runUntilIdle()
    return order
}

@Suite("The strategies of an exploration")
struct StrategyTests {
    /// Counts the draws in which a strategy leads to each order of two turns of one lane and eight of another.
    private func counts(of draws: Int, _ make: (SeededNumbers) -> any Chooser) -> [String: Int] {
        var counts: [String: Int] = [:]
        for draw in 0..<draws {
            var strategy = make(SeededNumbers(seed: 1, for: "draw \(draw)"))
            var (turns, order) = ([0, 0], "")
            while turns != [2, 8] {
                let lanes = [0, 1].filter { turns[$0] < [2, 8][$0] }
                let point = ChoicePoint(
                    kind: .task, number: order.count, lanes: lanes, usual: 0, placeLane: lanes[0],
                    step: turns[lanes[0]],
                    yields: lanes.map { _ in nil },
                    lane: { [turns] in ("\($0)", turns[$0], nil) },
                    words: nil)
                let lane = lanes.count == 1 ? lanes[0] : lanes[strategy.choose(at: point)]
                turns[lane] += 1
                order += "\(lane)"
            }
            counts[order, default: 0] += 1
        }
        return counts
    }

    @Test("uniform schedules lead to each order of the turns of all lanes about equally often")
    func uniform() throws {
        let turns = ["0": 2, "1": 8]
        // A hundred of each.
        let counts = counts(of: 4500) { UniformStrategy(turns: turns, isSelective: false, numbers: $0) }
        #expect(counts.count == 45 && counts.values.allSatisfy { (60...150).contains($0) }, "\(counts)")
        let byChance = self.counts(of: 4500) { RandomStrategy(numbers: $0) }
        #expect(byChance.count < 45 || byChance.values.min()! < 20, "\(byChance)")
    }

    @Test("with a few lanes selected, the others do not matter for the orders of these")
    func selective() throws {
        let counts = counts(of: 4500) {
            UniformStrategy(turns: ["0": 2, "1": 8, "elsewhere": 100], isSelective: true, numbers: $0)
        }
        #expect(counts.count == 45, "\(counts)")
    }

    @Test("a turn waits while others have many")
    func partialOrders() throws {
        func waits(_ simulation: Simulation) -> Bool {
            order(simulation, of: ["a": 2, "b": 14]).contains("abbbbbbbbbbbbba")
        }
        let found = try #require(firstSchedule(of: 1000, with: [.partialOrders], in: waits))
        #expect(found < 1000)
        #expect(firstSchedule(of: 1000, with: [.random], in: waits) == nil)
    }

    @Test("a schedule that has met a new mark is departed from: a chain of unlikely choices is found link by link")
    func novelMarks() {
        func open(_ simulation: Simulation, isMarked: Bool) -> Bool {
            for lock in 1...6 {
                guard simulation.choice("the digit of lock \(lock)", of: Array(0..<10)) == 7 else { return false }
                if isMarked { simulation.sometimes("lock \(lock) is open") }
            }
            return true
        }
        for seed in 0..<3 as Range<UInt64> {
            #expect(firstSchedule(of: 6000, with: [.novelty], seed: seed) { open($0, isMarked: true) } != nil)
            #expect(firstSchedule(of: 6000, with: [.novelty], seed: seed) { open($0, isMarked: false) } == nil)
        }
    }

    @Test("a schedule with a new order of two turns is departed from")
    func novelOrders() {
        // In each of three rounds the second task must come first, though it has more steps.
        func overtakes(_ simulation: Simulation) -> Bool {
            var (overtaken, rounds) = (0, [Int](repeating: 0, count: 3))
            for task in 0...1 {
                simulation.loop.task(name: "\(task)") {
                    for round in rounds.indices {
                        for _ in 0..<2 * task { await Task.yield() }
                        if task == 0, rounds[round] == 1 { overtaken += 1 }
                        if task == 1, overtaken == round { rounds[round] = 1 }
                        try await simulation.loop.clock.sleep(
                            until: RunLoop.Instant(nanoseconds: 0) + .seconds(round + 1))
                    }
                }
            }
            simulation.runUntilIdle()
            return overtaken == 3
        }
        for seed in 0..<3 as Range<UInt64> {
            #expect(firstSchedule(of: 2000, with: [.novelty], seed: seed, in: overtakes) != nil)
            #expect(firstSchedule(of: 2000, with: [.random], seed: seed, in: overtakes) == nil)
        }
    }

    @Test("the length of a run is a text, with all its names")
    func runLengthIsText() throws {
        var length = RunLength()
        length.points = 12
        length.faults = ["a crash; 5 % = now": 3]
        length.turns = ["main.Server:42": 7, "*b@2": 1]
        #expect(RunLength("\(length)") == length)
        #expect(RunLength("12;a") == nil)
    }

    @Test("a known length keeps a bounded number of names, the same ones in each process")
    func boundedNames() {
        var length = RunLength()
        for start in [0, 200, 100] {
            var other = RunLength()
            other.turns = Dictionary(uniqueKeysWithValues: (start..<start + 200).map { ("task \($0)", $0) })
            length.grow(to: other)
        }
        #expect(length.turns.count == RunLength.mostNames)
        #expect(length.turns.keys.sorted() == (0..<400).map { "task \($0)" }.sorted().prefix(256).sorted())
    }
}
