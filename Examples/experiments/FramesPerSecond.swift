import Scenarios

/// The frames of display links, summed for each second, which has too many lines to compare.
struct FramesPerSecond {
    private let scenario: Scenario

    init(_ scenario: Scenario) {
        self.scenario = scenario
    }

    private struct Sum {
        var frames = 0
        var dropped: Int64 = 0

        var words: String { "\(frames) frames" + (dropped > 0 ? ", \(dropped) dropped" : "") }
    }

    /// Returns the events without their end, in words. The frames of each second, its end included, are one line at its
    /// end, for each link without a meter.
    func summing(_ events: [ScenarioEvent]) -> [Observation] {
        let links = scenario.links.filter { !$0.hasMeter }.map(\.name)
        var observations: [Observation] = []
        var sums: [String: Sum] = [:]
        var second: Int64 = 1
        func closeSeconds(before t: Int64) {
            while second * 1_000_000_000 < t {
                for link in links {
                    let event = "\(link): \(sums[link, default: Sum()].words)"
                    observations.append(.init(t: second * 1_000_000_000, event: event))
                }
                sums = [:]
                second += 1
            }
        }
        for event in events.dropLast() {
            if case .frame(let name, _, _, let timestamp, let dropped) = event.kind {
                closeSeconds(before: timestamp)
                sums[name, default: Sum()].frames += 1
                sums[name, default: Sum()].dropped += dropped
            } else {
                closeSeconds(before: event.t + (links.isEmpty ? 0 : 1))
                observations.append(.init(t: event.t, event: event.words))
            }
        }
        closeSeconds(before: scenario.duration + 1)
        return observations
    }
}
