import Testing

@testable import Scenarios
@testable import experiments

@Suite("The experiments")
struct ExperimentTests {
    @Test("each experiment equals its document on virtual time, line by line", arguments: 1...16)
    func isEqualToDocument(number: Int) throws {
        let comparison = Comparison(try #require(Experiment.named("X\(number)")), on: .virtual)
        #expect(comparison.isEqual, "\(comparison.text)")
        #expect(!comparison.rows.isEmpty)
    }

    /// Returns the data of the experiments that are scenarios.
    private static func scenario(_ number: Int) throws -> Scenario {
        guard case .scenario(let scenario, _) = try #require(Experiment.named("X\(number)")).play else {
            throw ScenarioError("X\(number)", "is a program")
        }
        return scenario
    }

    @Test(
        "each scenario is read again as it was written down",
        arguments: [1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15])
    func isReadAgain(number: Int) throws {
        let scenario = try Self.scenario(number)
        #expect(try Scenario(json: Array(RandomScenario.describe(scenario).utf8)) == scenario)
    }

    @Test(
        "experiments on the main loop agree with the reference model",
        arguments: [1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 13, 15])
    func agreesWithModel(number: Int) throws {
        let scenario = try Self.scenario(number)
        #expect(ScenarioPlayer(scenario).play() == ReferenceModel.events(of: scenario))
    }

    @Test("experiments in the background report events on background threads", arguments: [11, 14])
    func background(number: Int) throws {
        let events = ScenarioPlayer(try Self.scenario(number)).play()
        #expect(events.contains { $0.thread?.hasPrefix("background-") == true })
    }
}
