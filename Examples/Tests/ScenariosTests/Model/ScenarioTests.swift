import Testing

@testable import Scenarios

@Suite("A scenario")
struct ScenarioTests {
    @Test("the modes of links are modes of the scenario")
    func modes() throws {
        #expect(try read(#"{"duration":1,"links":[{"name":"L","modes":["m","common"]}]}"#).modes == ["default", "m"])
    }
}
