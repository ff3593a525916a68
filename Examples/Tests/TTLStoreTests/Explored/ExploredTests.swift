import ExampleTestSupport
import RunLoopExploration
import RunLoopTesting
import Testing

@Suite("TTLStore, explored")
struct ExploredTests {
    /// `SCHEDULES=10000` tries as many.
    @Test("nothing acknowledged is lost, nothing expired is served, and each request has its reply")
    func promises() async {
        let schedules = amount(of: "SCHEDULES", usually: 40)
        // What a host holds when it crashes stays, tasks that wait included.
        let limits = Exploration.Limits(reportsDeadlocks: false, reportsLeaks: false)
        await explore(Exploration(schedules: schedules, limits: limits)) { try ExploredStore($0).run() }
    }
}
