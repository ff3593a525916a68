import ExampleTestSupport
import RunLoopExploration
import RunLoopTesting
import Testing

@Suite("TTLStore, explored")
struct ExploredTests {
    /// The number of schedules is in `SCHEDULES`, such as `SCHEDULES=10000`.
    @Test("nothing acknowledged is lost, nothing expired is served, and each request has its reply")
    func promises() async {
        let schedules = amount(of: "SCHEDULES", usually: 60)
        // Objects held by a host when it crashes stay, including waiting tasks.
        let limits = Exploration.Limits(reportsDeadlocks: false, reportsLeaks: false)
        let marks = [
            "a host crashed", "a process was killed", "a link was cut", "a connection was reset",
            "a packet was sent again", "a write was partial", "the log was written anew",
        ]
        await explore(Exploration(schedules: schedules, limits: limits), requiring: marks) {
            try ExploredStore($0).run()
        }
    }
}
