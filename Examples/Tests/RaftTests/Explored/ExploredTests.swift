import ExampleTestSupport
import RunLoopExploration
import RunLoopTesting
import Testing

@Suite("Raft, explored")
struct ExploredTests {
    /// The number of schedules is in `SCHEDULES`, such as `SCHEDULES=10000`, and the seed in `SEED`.
    @Test("clients see one register, and the members agree")
    func promises() async {
        let schedules = amount(of: "SCHEDULES", usually: 32)
        let seed = UInt64(amount(of: "SEED", usually: 0))
        // Deep faults need much trouble, and the other strategies depart from the usual only a few times.
        let exploration = Exploration(schedules: schedules, seed: seed, strategies: [.random])
        let marks = [
            "a host crashed", "a host started again", "a leader was deposed",
            "a read was refused, because another member leads", "a torn end of a journal was cut off",
            "a vote was refused because of the log", "an entry of an earlier term was committed with a later one",
            "entries of another leader were replaced",
        ]
        await explore(exploration, requiring: marks) { try ExploredCluster($0).run() }
    }
}
