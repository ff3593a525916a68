@_spi(Ports) internal import RunLoopCore

/// Operations that no order explains: the longest legal order, the operations that cannot come after it, and a drawing.
/// A `Sendable` value.
public struct HistoryError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The part of the state that the operations concern, from the model's `part(of:)`.
    public let part: String?

    /// The longest order that the model accepts, one operation each, with its client and its outcome.
    public let order: [String]

    /// The operations of which one has to come next, and none can.
    public let unplaced: [String]

    /// A Boolean value that indicates whether the search for an order was given up: there may be one. The search takes
    /// too many steps where many operations of a part overlap, or where many without an outcome explain each state in
    /// many ways.
    public let isUndecided: Bool

    /// A report with the last operations as bars. An operation without an outcome may have happened at any time after
    /// its beginning; its bar has no end.
    public let description: String

    /// The last operations of the order, in a report.
    private static let mostRows = 12
    private static let columns = 48

    init<Model>(
        _ entries: [History<Model>.Entry], _ failure: Impasse, in part: String?,
        keeping guarantees: SessionGuarantees? = nil
    ) {
        func words(_ index: Int) -> String {
            let entry = entries[index]
            let outcome = entry.end.map { " → \(withoutOptional($0.outcome))" }
            return "\(entry.client): \(entry.operation)\(outcome ?? ", no outcome")"
        }
        self.part = part
        isUndecided = failure.isGivenUp
        order = failure.order.map(words)
        unplaced = failure.unplaced.map(words)
        let shown = failure.order.suffix(Self.mostRows) + failure.unplaced
        let bars = Bars(shown.map { (entries[$0].begin.number, entries[$0].end?.moment.number) }, width: Self.columns)
        var rows: [(number: String, words: String, bar: String, dates: String)] = []
        for (row, index) in shown.enumerated() {
            let place = row - shown.count + failure.unplaced.count
            let number = place < 0 ? "\(failure.order.count + place + 1)" : "✕"
            let dates = "\(entries[index].begin.date)" + (entries[index].end.map { " to \($0.moment.date)" } ?? "")
            rows.append((number, words(index), bars.lines[row], dates))
        }
        let earlier = failure.order.count - (shown.count - failure.unplaced.count)
        let widths = (rows.map(\.number.count).max() ?? 0, rows.map(\.words.count).max() ?? 0)
        let what = "the operations\(part.map { " on \(quoted($0))" } ?? "")"
        let promise = guarantees.map { " (\($0))" } ?? ""
        let impasse = "after \(failure.order.count), none of those marked ✕ can come next"
        var lines = [
            failure.isGivenUp
                ? "the search for an order of \(what) that explains their outcomes\(promise) was given up, and there may be "
                    + "one: too many of them overlap or have no outcome; in the longest order that was found, \(impasse)"
                : "no order of \(what) explains their outcomes\(promise): \(impasse)"
        ]
        if earlier > 0 { lines.append("\(earlier) earlier operation\(earlier == 1 ? "" : "s")") }
        lines += rows.map { row in
            let number = String(repeating: " ", count: widths.0 - row.number.count) + row.number
            let words = row.words + String(repeating: " ", count: widths.1 - row.words.count)
            return "\(number)  \(words)  \(row.bar)  \(row.dates)"
        }
        description = lines.joined(separator: "\n")
    }
}

/// The longest legal order, and the operations of which none can come next, as indices of entries.
struct Impasse {
    var order: [Int] = []
    var unplaced: [Int] = []
    /// `true` if the search was given up, so that there may be an order.
    var isGivenUp = false
}

/// Returns a value as text; an optional one as the text of its value or as `nil`.
private func withoutOptional(_ value: Any) -> String {
    let mirror = Mirror(reflecting: value)
    guard mirror.displayStyle == .optional else { return "\(value)" }
    return mirror.children.first.map { withoutOptional($0.value) } ?? "nil"
}

/// Intervals as lines, in the order of their beginnings and ends.
private struct Bars {
    private(set) var lines: [String] = []

    /// - Parameter intervals: the numbers of the beginnings and ends; without an end, the line extends to the margin.
    init(_ intervals: [(begin: Int, end: Int?)], width: Int) {
        let moments = Set(intervals.flatMap { [$0.begin, $0.end ?? $0.begin] }).sorted()
        let places = Dictionary(uniqueKeysWithValues: moments.enumerated().map { ($0.element, $0.offset) })
        func column(_ moment: Int) -> Int { places[moment]! * (width - 2) / max(moments.count - 1, 1) }
        lines = intervals.map { interval in
            let begin = column(interval.begin)
            let end = interval.end.map { max(column($0), begin + 1) }
            let line = String(repeating: "─", count: (end ?? width) - begin - 1)
            let tail = end.map { "┤" + String(repeating: " ", count: width - 1 - $0) } ?? ""
            return String(repeating: " ", count: begin) + "├" + line + tail
        }
    }
}
