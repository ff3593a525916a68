import RunLoopExploration
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopTesting
import RunLoopUnix
import Testing
import WebhooksTestSupport

@Suite("Tries that are cancelled, explored", .timeLimit(.minutes(10)))
struct ExploredTests {
    struct Broken: Error, CustomStringConvertible {
        let description: String
    }

    /// Open are the times when the service is stopped, which cancels tries and their pauses, and when it is killed, when
    /// its host or a destination crashes, or is cut off; and the order of the calls. `SCHEDULES=10000` runs as many.
    @Test("each acknowledged hook is delivered, whenever the service stops")
    func stops() async {
        // Objects held by a host when it crashes stay.
        let limits = Exploration.Limits(reportsDeadlocks: false, reportsLeaks: false)
        let exploration = Exploration(schedules: amount(of: "SCHEDULES", usually: 60), limits: limits)
        let marks = ["a host crashed", "a process was killed", "a link was cut"]
        await explore(exploration, requiring: marks) { simulation in
            simulation.captureExecutors()
            let day = Day(simulation, pauses: (0.2, 1), serve: Receiver.serve([.takes, .refuses, .isSlow]))
            day.service.disk.slow(.sync, by: .milliseconds(5))
            simulation.mayHappen("the service is stopped", atMost: 2) { day.service.send(.terminate) }
            simulation.mayHappen("the service is killed") { day.service.send(.kill) }
            simulation.mayHappen("the host crashes") { day.service.crash() }
            simulation.mayHappen("the service reloads") { day.service.send(.hangUp) }
            simulation.mayHappen("a destination crashes") { day.receivers[0].crash() }
            simulation.mayHappen("the service is cut off") { day.network.partition([day.service]) }
            for _ in 0..<6 {
                day.send()
                simulation.advance(by: .milliseconds(700))
            }
            // The longest stop, after which the service manager starts the service again.
            simulation.advance(by: .seconds(40))
            if let failure = day.end().first { throw Broken(description: failure) }
        }
    }
}
