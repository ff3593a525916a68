import RunLoopKit
import Scenarios

/// All kinds of timers side by side, every half second, under four conditions, to show the differences.
struct Gallery {
    private let shows: [Show]

    /// The events under one condition.
    private struct Show {
        let condition: Condition
        let events: [ScenarioEvent]
    }

    private enum Condition: String, CaseIterable {
        case nothing, busy, drag, both

        var title: String {
            switch self {
            case .nothing: "(a) nothing else happens"
            case .busy: "(b) the main loop is busy from 2.7 s to 5.2 s"
            case .drag: "(c) the user drags from 2.7 s to 5.2 s"
            case .both:
                "(d) the user drags from 2.2 s to 6.2 s, and meanwhile the main loop is busy from 3.7 s to 5.2 s"
            }
        }

        var scenario: Scenario {
            var scenario = Scenario(
                duration: 10_200_000_000, commonModes: ["tracking"],
                timers: [
                    .init(name: "timer", first: half, interval: half, repeats: true),
                    .init(name: "timer, common", first: half, interval: half, repeats: true, modes: ["common"]),
                ],
                sources: [
                    .init(name: "source, main", start: half, interval: half),
                    .init(name: "source, pool", start: half, interval: half, queue: .background),
                ],
                links: [
                    .init(name: "link", preferred: 2), .init(name: "link, common", preferred: 2, modes: ["common"]),
                ])
            switch self {
            case .nothing: break
            case .busy: scenario.busy = [.init(at: 2_700_000_000, duration: 2_500_000_000)]
            case .drag: scenario.runs = [.init(mode: "tracking", from: 2_700_000_000, until: 5_200_000_000)]
            case .both:
                scenario.runs = [.init(mode: "tracking", from: 2_200_000_000, until: 6_200_000_000)]
                scenario.busy = [.init(at: 3_700_000_000, duration: 1_500_000_000, modes: ["common"])]
            }
            return scenario
        }
    }

    private static let kinds: [(name: String, title: String)] = [
        ("timer", "Timer, default mode"), ("timer, common", "Timer, common modes"),
        ("source, main", "TimerSource, main loop"), ("source, pool", "TimerSource, background"),
        ("link", "DisplayLink, default mode"), ("link, common", "DisplayLink, common modes"),
    ]

    init(on clock: Testbed.Clock) {
        shows = Condition.allCases.map {
            Show(condition: $0, events: ScenarioPlayer($0.scenario, clock: clock).play())
        }
    }

    // MARK: Counting

    private struct Count {
        var fires = 0
        var lost: Int64 = 0
        var latest: Int64 = 0

        init(of name: String, in events: [ScenarioEvent]) {
            for event in events {
                switch event.kind {
                case .fire(name, _, _, let due, let missed, _): add(event.t - due, missed)
                case .delivery(name, _, _, let due, let data): add(event.t - due, data - 1)
                case .frame(name, _, _, let timestamp, let dropped): add(event.t - timestamp, dropped)
                default: continue
                }
            }
        }

        private mutating func add(_ lateness: Int64, _ lost: Int64) {
            fires += 1
            self.lost += lost
            latest = max(latest, lateness)
        }
    }

    // MARK: Printing

    var text: String {
        var lines = [
            "Every half second for ten seconds: how many fires, how many dates lost, and the latest fire.", "",
        ]
        let heads = shows.map { "(\($0.condition.title.dropFirst().first!)) \($0.condition.rawValue)".padding(to: 22) }
        lines.append(("  " + "".padding(to: 28) + heads.joined()).trimmed)
        lines.append(("  " + "".padding(to: 28) + shows.map { _ in "fires  lost  latest   " }.joined()).trimmed)
        for kind in Gallery.kinds {
            let cells = shows.map { cell(Count(of: kind.name, in: $0.events)).padding(to: 22) }
            lines.append(("  " + kind.title.padding(to: 28) + cells.joined()).trimmed)
        }
        for show in shows {
            lines += ["", show.condition.title, ""]
            lines += TextChart(scenario: show.condition.scenario, events: show.events).rows()
        }
        return (lines + ["", TextChart.legend]).joined(separator: "\n")
    }

    private func cell(_ count: Count) -> String {
        // A real clock is never on time to the nanosecond.
        let latest = count.latest > half / 100 ? roundedSeconds(count.latest, decimals: 2, atLeast: 1) + " s" : "-"
        return "\(count.fires)".leading(5) + "\(count.lost)".leading(6) + latest.leading(8)
    }

    var json: String {
        shows.flatMap { show in
            Gallery.kinds.map { kind in
                let count = Count(of: kind.name, in: show.events)
                return "{\"condition\":\(quoted(show.condition.rawValue)),\"timer\":\(quoted(kind.title)),"
                    + "\"fires\":\(count.fires),\"lost\":\(count.lost),\"latest\":\(decimalSeconds(count.latest))}"
            }
        }.joined(separator: "\n")
    }

    var svg: String {
        let pictures = shows.map {
            SVGChart(scenario: $0.condition.scenario, events: $0.events, title: $0.condition.title)
        }
        return SVGChart.document(pictures, title: "Timers side by side")
    }
}

private let half: Int64 = 500_000_000
