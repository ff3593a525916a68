import RunLoopKit
import Scenarios

/// The results of an experiment, line by line beside the document.
struct Comparison {
    let experiment: Experiment
    let rows: [Row]
    let picture: SVGChart

    struct Row {
        let expected: Experiment.Expectation?
        let observed: Observation?
        let isEqual: Bool
    }

    /// Runs an experiment. On virtual time every line must be equal to the nanosecond. On the real clock the events
    /// must be the same, on the same grid points, and none may come early; their lateness is shown, not judged.
    init(_ experiment: Experiment, on clock: Testbed.Clock) {
        self.experiment = experiment
        let (observed, picture) = experiment.perform(on: clock)
        self.picture = picture
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
        var lines = ["\(experiment.id)  \(experiment.title)", Comparison.line(Row.heads)]
        for row in rows {
            lines.append(Comparison.line(row.columns))
        }
        lines.append(isEqual ? "  equal to the document" : "  DIFFERENT from the document")
        return lines.joined(separator: "\n")
    }

    private static func line(_ columns: [String]) -> String {
        let widths = [22, 10, 15]
        return "  " + zip(columns, widths).map { $0.padding(to: $1) }.joined() + columns[3]
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

extension Comparison.Row {
    static let heads = ["document", "grid", "here", "event"]

    /// The line of the document, its exact time, the time here, and the event; of an event that differs, also the one
    /// that was expected.
    var columns: [String] {
        let times = [expected?.nanoseconds, observed?.t].map { time in
            time.map { "+\(roundedSeconds($0, decimals: 4, atLeast: 1))" } ?? "-"
        }
        var event = observed?.event ?? (isEqual ? "" : "nothing")
        if !isEqual { event += "   <-- expected: \(expected?.event ?? "nothing")" }
        return [expected?.document ?? "-"] + times + [event]
    }
}
