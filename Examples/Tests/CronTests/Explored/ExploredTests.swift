import ExampleTestSupport
import RunLoopExploration
import RunLoopTesting
import Testing

@Suite("Cron, explored")
struct ExploredTests {
    /// The number of schedules is in `SCHEDULES`, such as `SCHEDULES=10000`.
    @Test("each date has its run or a reason for none, and nothing runs that should not")
    func promises() async {
        let schedules = amount(of: "SCHEDULES", usually: 32)
        // Objects held by a host when it crashes stay, including waiting tasks.
        let limits = Exploration.Limits(reportsDeadlocks: false, reportsLeaks: false)
        let marks = [
            "a host crashed", "a host started again", "a run took too long",
            "a date was skipped, because its job still ran", "dates were missed",
        ]
        await explore(Exploration(schedules: schedules, limits: limits), requiring: marks) {
            try ExploredCron($0).run()
        }
    }
}
