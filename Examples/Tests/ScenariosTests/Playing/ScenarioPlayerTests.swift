import ExampleTestSupport
import Scenarios
import Testing

@Suite("Random scenarios against the reference model")
struct ScenarioPlayerTests {
    /// The number of scenarios, enough to meet every corner many times over, in a few seconds; `make stress` plays
    /// more.
    static let count = UInt64(amount(of: "SCENARIOS", usually: 5000))

    @Test("thousands of random scenarios agree with the reference model")
    func agreesWithModel() {
        var disagreements = 0
        for seed in 0..<Self.count where disagreements < 5 {
            let scenario = RandomScenario.make(seed: seed)
            let expected = ReferenceModel.events(of: scenario)
            let played = ScenarioPlayer(scenario).play()
            guard expected != played else { continue }
            disagreements += 1
            let place = zip(expected, played).prefix { $0 == $1 }.count
            Issue.record(
                """
                seed \(seed): event \(place) should be \(expected.dropFirst(place).first.map { "\($0)" } ?? "none"), \
                is \(played.dropFirst(place).first.map { "\($0)" } ?? "none")
                \(RandomScenario.describe(scenario))
                """)
        }
    }

    @Test("two plays print the same bytes")
    func sameBytes() {
        for seed in 0..<200 as Range<UInt64> {
            let player = ScenarioPlayer(RandomScenario.make(seed: seed))
            #expect(player.play().map(\.json) == player.play().map(\.json), "seed \(seed)")
        }
    }

    @Test("a random scenario that is written down and read again is the same")
    func described() throws {
        for seed in 0..<500 as Range<UInt64> {
            let scenario = RandomScenario.make(seed: seed)
            #expect(try Scenario(json: Array(RandomScenario.describe(scenario).utf8)) == scenario, "seed \(seed)")
        }
    }
}
