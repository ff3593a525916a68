import RunLoopKit
import Scenarios

/// The results of an experiment, line by line beside the document.
struct Comparison {
    let experiment: Experiment
    let rows: [Row]

    struct Row {
        let expected: Experiment.Expectation?
        let observed: Observation?
        let isEqual: Bool
    }

    /// Runs an experiment. On virtual time every line must be equal to the nanosecond. On the real clock the events
    /// must be the same, on the same grid points, and none may come early; their lateness is shown, not judged.
    init(_ experiment: Experiment, on clock: Testbed.Clock) {
        self.experiment = experiment
        let observed = experiment.observations(on: clock)
        rows = (0..<max(observed.count, experiment.expected.count)).map { index in
            let expected = index < experiment.expected.count ? experiment.expected[index] : nil
            let observed = index < observed.count ? observed[index] : nil
            return Row(
                expected: expected, observed: observed, isEqual: Comparison.isEqual(expected, observed, clock))
        }
    }

    var isEqual: Bool { rows.allSatisfy(\.isEqual) }

    private static func isEqual(
        _ expected: Experiment.Expectation?, _ observed: Observation?, _ clock: Testbed.Clock
    ) -> Bool {
        guard let expected, let observed, expected.event == observed.event else { return false }
        return clock == .virtual ? observed.t == expected.nanoseconds : observed.t >= expected.nanoseconds
    }

    // MARK: Printing

    var text: String {
        var lines = ["\(experiment.id)  \(experiment.title)", Comparison.line("document", "grid", "here", "event")]
        for row in rows {
            lines.append(
                Comparison.line(
                    row.expected?.document ?? "-", row.expected.map { Comparison.offset($0.nanoseconds) } ?? "-",
                    row.observed.map { Comparison.offset($0.t) } ?? "-", event(of: row)))
        }
        lines.append(isEqual ? "  equal to the document" : "  DIFFERENT from the document")
        return lines.joined(separator: "\n")
    }

    private func event(of row: Row) -> String {
        guard !row.isEqual else { return row.observed?.event ?? "" }
        return "\(row.observed?.event ?? "nothing")   <-- expected: \(row.expected?.event ?? "nothing")"
    }

    private static func line(_ columns: String...) -> String {
        let widths = [22, 10, 15]
        return "  " + zip(columns, widths).map { $0.padding(to: $1) }.joined() + columns[3]
    }

    private static func offset(_ nanoseconds: Int64) -> String {
        "+\(roundedSeconds(nanoseconds, decimals: 4, atLeast: 1))"
    }

    var json: String {
        let lines = rows.map { row in
            let expected = row.expected.map {
                "\"expected\":\(decimalSeconds($0.nanoseconds)),\"document\":\(quoted($0.document)),"
            }
            let observed = row.observed.map {
                "\"t\":\(decimalSeconds($0.t)),\"event\":\(quoted($0.event)),"
            }
            return "{\"experiment\":\"\(experiment.id)\",\(expected ?? "")\(observed ?? "")\"equal\":\(row.isEqual)}"
        }
        return lines.joined(separator: "\n")
    }
}
