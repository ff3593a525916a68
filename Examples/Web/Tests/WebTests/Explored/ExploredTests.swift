import RunLoopExploration
import RunLoopSimulation
import RunLoopTesting
import Testing

@Suite("Uploads, explored", .timeLimit(.minutes(10)))
struct ExploredTests {
    /// The number of schedules is in `SCHEDULES`, such as `SCHEDULES=10000`.
    @Test("an acknowledged upload is whole, and nothing incomplete is left")
    func promises() async {
        let schedules = amount(of: "SCHEDULES", usually: 40)
        // Objects held by a host when it crashes stay.
        let limits = Exploration.Limits(reportsDeadlocks: false, reportsLeaks: false)
        let marks = ["a host crashed", "a process was killed", "a link was cut", "a connection was reset"]
        await explore(Exploration(schedules: schedules, limits: limits), requiring: marks) {
            $0.captureExecutors()
            try ExploredUpload($0).run()
        }
    }
}
