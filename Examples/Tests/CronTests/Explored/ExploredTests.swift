import ExampleTestSupport
import RunLoopExploration
import RunLoopTesting
import Testing

@Suite("Cron, explored")
struct ExploredTests {
    /// `SCHEDULES=10000` tries as many.
    @Test("each date has its run or a reason for none, and nothing runs that should not")
    func promises() async {
        let schedules = amount(of: "SCHEDULES", usually: 32)
        // What a host holds when it crashes stays, tasks that wait included.
        let limits = Exploration.Limits(reportsDeadlocks: false, reportsLeaks: false)
        await explore(Exploration(schedules: schedules, limits: limits)) { try ExploredCron($0).run() }
    }
}
