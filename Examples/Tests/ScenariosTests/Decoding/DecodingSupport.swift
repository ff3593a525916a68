@testable import Scenarios

/// Reads the scenario in a test's text.
func read(_ json: String) throws(ScenarioError) -> Scenario { try Scenario(json: Array(json.utf8)) }

/// Returns the error of a scenario that cannot be read; `nil` if it can.
func fault(_ json: String) -> String? {
    do throws(ScenarioError) {
        _ = try read(json)
        return nil
    } catch {
        return error.description
    }
}
