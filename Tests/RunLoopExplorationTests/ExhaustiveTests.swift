import RunLoopExploration
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("All schedules with some departures")
struct ExhaustiveTests {
    /// Starts tasks that each note their steps.
    private static func steps(_ tasks: Int, _ count: Int, _ simulation: Simulation) -> [String] {
        let log = Log<String>()
        for task in 0..<tasks {
            simulation.loop.task(name: "\(task)") {
                for _ in 0..<count {
                    await Task.yield()
                    log("\(task)")
                }
            }
        }
        simulation.runUntilIdle()
        return log.entries
    }

    @Test("with enough departures, every order of two tasks is tried", arguments: 1...3)
    func allOrders(count: Int) {
        var found: Set<[String]> = []
        let result = ExhaustiveExploration(departures: 2 * count).run { simulation in
            found.insert(Self.steps(2, count, simulation))
        }
        // Each order is a choice of the places of one task's steps.
        let orders = (1...count).reduce(1) { $0 * (count + $1) / $1 }
        #expect(found.count == orders)
        guard case .proven(let coverage) = result else { return #expect(Bool(false), "\(result)") }
        #expect(coverage.isComplete && coverage.schedules.count == 2 * count + 1)
    }

    @Test("schedules are counted for each number of departures", arguments: 0...3)
    func number(departures: Int) {
        var runs = 0
        let result = ExhaustiveExploration(departures: departures).run { simulation in
            runs += 1
            for index in 0..<6 { _ = simulation.choice("\(index)", of: [1, 2, 3]) }
        }
        guard case .proven(let coverage) = result else { return #expect(Bool(false), "\(result)") }
        // The numbers of ways to choose some of six choices, with two possibilities each.
        let expected = [1, 12, 60, 160].prefix(departures + 1)
        #expect(coverage.schedules == Array(expected))
        #expect(runs >= expected.reduce(0, +))
    }

    @Test("a fault with the fewest departures is found")
    func fewest() {
        let result = ExhaustiveExploration(departures: 3).run { simulation in
            let chosen = (0..<8).filter { simulation.mayHappen("\($0)") }
            if chosen == [1, 4, 5] || chosen == [6, 7] { throw Broken(description: "\(chosen)") }
        }
        guard case .failed(let finding) = result else { return #expect(Bool(false), "\(result)") }
        #expect(finding.token.departures.map(\.place) == ["6", "7"] && finding.isReproducible, "\(finding)")
        #expect("\(finding)".contains("(all by turns)"))
    }

    @Test("a limit below the number of schedules leaves the exploration incomplete", arguments: [6, 7, 8])
    func limit(schedules: Int) {
        let result = ExhaustiveExploration(departures: 1, schedules: schedules).run { simulation in
            for index in 0..<6 { _ = simulation.mayHappen("\(index)") }
        }
        switch (result, schedules) {
        case (.incomplete(let coverage), 6): #expect(coverage.schedules == [1, 5] && !coverage.isComplete)
        case (.proven(let coverage), 7...): #expect(coverage.schedules == [1, 6])
        default: #expect(Bool(false), "\(result)")
        }
    }

    @Test("a program that differs when it is repeated is a finding")
    func difference() {
        var runs = 0
        let result = ExhaustiveExploration(departures: 2).run { simulation in
            runs += 1
            for index in 0..<(runs > 4 ? 4 : 3) { _ = simulation.mayHappen("\(index)") }
        }
        guard case .failed(let finding) = result else { return #expect(Bool(false), "\(result)") }
        #expect(finding.fault.kind == .difference)
    }

    /// Notes the orders of events on two hosts, each of which posts to its own thread.
    private static func hosts(_ simulation: Simulation, _ seen: inout Set<[String]>) {
        let logs = ["a": Log<String>(), "b": Log<String>()]
        let network = SimulatedNetwork(simulation)
        for (name, log) in logs.sorted(by: { $0.key < $1.key }) {
            network.addHost(name) { loop in
                for number in 0..<2 {
                    loop.task {
                        await Task.yield()
                        log("\(number)")
                    }
                }
            }
        }
        simulation.advance(by: .seconds(1))
        seen.insert(logs.sorted { $0.key < $1.key }.map { "\($0.key)\($0.value.entries)" })
    }

    @Test("between hosts that share nothing, fewer schedules reach the same states")
    func hosts() {
        func explore(sharingNothing: Bool) -> (schedules: Int, states: Set<[String]>) {
            var states: Set<[String]> = []
            let exploration = ExhaustiveExploration(departures: 2, hostsShareNothing: sharingNothing)
            let result = exploration.run { Self.hosts($0, &states) }
            guard case .proven(let coverage) = result else { return (0, []) }
            return (coverage.schedules.reduce(0, +), states)
        }
        let (all, fewer) = (explore(sharingNothing: false), explore(sharingNothing: true))
        #expect(all.states == fewer.states && all.states.count == 4)
        #expect(fewer.schedules > 0 && fewer.schedules < all.schedules, "\(fewer.schedules) of \(all.schedules)")
    }
}
