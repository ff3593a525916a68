import FoundationEssentials
import Scenarios
import Testing

@Suite("The experiments' files")
struct ExperimentDataTests {
    private static let directory =
        #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(3).joined(separator: "/")
        + "/Sources/experiments/Data"

    /// One of the experiments with sources, links, named timers or countdowns.
    private static func scenario(_ number: Int) throws -> Scenario {
        let data = try #require(FileManager.default.contents(atPath: "\(directory)/X\(number).json"))
        return try Scenario(json: Array(data))
    }

    @Test("each is read, and read again as it was written down", arguments: 8...15)
    func isRead(number: Int) throws {
        let scenario = try Self.scenario(number)
        let lists = [scenario.sources.count, scenario.links.count, scenario.named.count, scenario.countdowns.count]
        #expect(lists.reduce(0, +) > 0)
        #expect(try Scenario(json: Array(RandomScenario.describe(scenario).utf8)) == scenario)
    }

    @Test("each that stays on the main loop goes as the reference model says", arguments: [8, 9, 10, 12, 13, 15])
    func agreesWithModel(number: Int) throws {
        let scenario = try Self.scenario(number)
        #expect(ScenarioPlayer(scenario).play() == ReferenceModel.events(of: scenario))
    }

    @Test("those of the background are heard of there", arguments: [11, 14])
    func background(number: Int) throws {
        let events = ScenarioPlayer(try Self.scenario(number)).play()
        #expect(events.contains { $0.thread?.hasPrefix("background-") == true })
    }
}
