import ExampleTestSupport
import RunLoopExploration
import RunLoopTesting
import Testing

@Suite("Raft, explored")
struct ExploredTests {
    /// Tries the number of schedules in `SCHEDULES`, such as `SCHEDULES=10000`.
    @Test("clients see one register, and the members agree")
    func promises() async {
        let schedules = amount(of: "SCHEDULES", usually: 10)
        // Objects held by a host when it crashes stay, including waiting tasks.
        let limits = Exploration.Limits(reportsDeadlocks: false, reportsLeaks: false)
        // Deep faults need trouble many times, and the other strategies depart from the usual only a few times.
        let seed = UInt64(amount(of: "SEED", usually: 0))
        let kinds: [Set<Exploration.Strategies>] = [
            Set(Exploration.Strategies.allCases), [.random], [.random, .partialOrders, .uniform, .priorities],
        ]
        let exploration = Exploration(
            schedules: schedules, seed: seed, limits: limits, strategies: kinds[amount(of: "KINDS", usually: 1)])
        await explore(exploration) { try ExploredCluster($0).run() }
    }
}
