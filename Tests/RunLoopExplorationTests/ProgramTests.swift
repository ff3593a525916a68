import Foundation
import RunLoopExploration
import RunLoopHosts
import RunLoopSimulation
import Testing

/// Races, a program of Dispatch, locks and tasks that does not know of simulations.
@Suite("Programs of the system, explored", .timeLimit(.minutes(5)))
struct ProgramTests {
    private static let all = ["update", "deadlock", "signal", "tasks"]
    private let limits = Exploration.Limits(reportsLeaks: false)

    private func run(_ simulation: Simulation, _ arguments: [String]) {
        // It is built beside the tests.
        let tests = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
        let path = tests.deletingLastPathComponent().appendingPathComponent("Races").path
        let network = SimulatedNetwork(simulation)
        network.addProgram("host", at: path, arguments: arguments)
        simulation.advance(by: .seconds(100))
    }

    @Test("races between the threads of a program are found, and replayed", arguments: all)
    func faults(_ fault: String) throws {
        let exploration = Exploration(schedules: 200, limits: limits)
        let result = exploration.run { run($0, [fault]) }
        guard case .failed(let finding) = result else {
            Issue.record("\(fault) is not found")
            return
        }
        let sentence = fault == "deadlock" ? "waits for a lock of thread" : "exited with code 1"
        #expect(finding.description.contains(sentence), "\(finding)")
        if fault == "deadlock" { #expect(finding.description.contains("take"), "\(finding)") }
        #expect(exploration.replay(finding.token) { run($0, [fault]) } != nil, "\(finding)")
    }

    @Test("nothing is found in the same program without its races", arguments: all + ["threads"])
    func twins(_ fault: String) {
        let result = Exploration(schedules: 50, limits: limits).run { run($0, [fault, "right"]) }
        guard case .passed = result else {
            Issue.record("\(fault): \(result)")
            return
        }
    }
}
