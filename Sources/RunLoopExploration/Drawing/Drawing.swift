@_spi(Ports) internal import RunLoopSimulation

/// Rows of one or more runs, side by side, as the elements of an SVG picture: time goes down, each machine, thread and
/// task has a column, and messages are arrows.
struct Drawing {
    private enum Line {
        /// The number of a row in each run.
        case rows([Int?])
        /// A number of rows that are left out.
        case gap(Int)
    }

    private let runs: [Rows]
    /// The choices of each run, to which its rows refer.
    private let choices: [[Trace.Choice]]
    private let step: Int?
    private let lines: [Line]
    private let columns: Columns
    private let headHeight: Int
    /// The width of the words, and of a run.
    private let (wordsWidth, runWidth): (Int, Int)

    /// Sizes in pixels. A letter has a width of 7.25.
    private static let (lineHeight, columnWidth, timeWidth, margin) = (20, 28, 110, 16)
    /// The letters of a text that are drawn; the title of its row has all of them.
    private static let mostLetters = 96

    /// - Parameters:
    ///   - choices: the choices of each run, to which its rows refer.
    ///   - pairs: the rows to draw, in order: in each line the number of the row of each run.
    ///   - step: the number of the choice to mark in the first run, counted from 1.
    init(_ runs: [Rows], _ choices: [[Trace.Choice]], _ pairs: [[Int?]], step: Int?) {
        (self.runs, self.choices, self.step) = (runs, choices, step)
        columns = Columns(of: runs)
        var (lines, next) = ([Line](), 0)
        for pair in pairs {
            if let first = pair[0] {
                if first > next { lines.append(.gap(first - next)) }
                next = first + 1
            }
            lines.append(.rows(pair))
        }
        self.lines = lines
        let longestName = columns.all.map(\.name.count).max() ?? 0
        headHeight = Self.width(ofLetters: longestName) * 5 / 7 + 40
        let longestText = runs.flatMap(\.rows).map { min($0.event.shortWords.count, Self.mostLetters) }.max() ?? 0
        wordsWidth = Self.width(ofLetters: longestText + 12)
        runWidth = Self.timeWidth + columns.all.count * Self.columnWidth + wordsWidth
    }

    static func width(ofLetters count: Int) -> Int { (count * 29 + 3) / 4 }

    var size: (width: Int, height: Int) {
        (runs.count * runWidth + 2 * Self.margin, headHeight + lines.count * Self.lineHeight + Self.margin)
    }

    /// Returns the elements of the picture.
    ///
    /// - Parameter titles: a title for each run, if any; further ones are not used.
    func elements(titles: [String] = []) -> String {
        var parts: [String] = []
        for run in runs.indices {
            if titles.indices.contains(run) {
                parts.append(text(left(of: run), Self.margin, titles[run], class: "title"))
            }
            parts += heads(of: run) + lives(of: run)
        }
        parts += lines.indices.map(line)
        return parts.joined(separator: "\n")
    }

    // MARK: Places

    private func left(of run: Int) -> Int { Self.margin + run * runWidth }
    private func x(_ column: Columns.Column, _ run: Int) -> Int {
        left(of: run) + Self.timeWidth + columns[column] * Self.columnWidth
    }
    private func y(_ line: Int) -> Int { headHeight + line * Self.lineHeight + Self.lineHeight / 2 }

    // MARK: Columns

    private func heads(of run: Int) -> [String] {
        let names = columns.all.map { column in
            let (x, y) = (x(column, run), headHeight - 14)
            let kind = column.part.isEmpty ? "machine" : "part"
            return "<text class=\"\(kind)\" transform=\"translate(\(x) \(y)) rotate(-45)\">\(column.name.markup)</text>"
        }
        let groups = columns.machines.filter { $0.count > 1 }.map { range in
            let (from, to) = (x(columns.all[range.lowerBound], run), x(columns.all[range.upperBound], run))
            return "<path class=\"group\" d=\"M\(from - 8) \(headHeight - 6)H\(to + 8)\"/>"
        }
        return names + groups
    }

    /// Returns the lines from the first to the last row of each column; for a machine, while it has a process.
    private func lives(of run: Int) -> [String] {
        columns.all.flatMap { column in
            spans(of: column, in: run).map { span in
                "<path class=\"life\" d=\"M\(x(column, run)) \(y(span.lowerBound))V\(y(span.upperBound))\"/>"
            }
        }
    }

    private func spans(of column: Columns.Column, in run: Int) -> [ClosedRange<Int>] {
        let present = lines.indices.compactMap { index in row(index, run).map { (index, $0) } }
        let own = present.filter { Columns.Column(of: $1.event) == column || $1.event.sender == column.name }.map(\.0)
        let alive = present.filter { column.part.isEmpty && $1.alive.contains(column.machine) }.map(\.0)
        guard !alive.isEmpty else { return own.isEmpty ? [] : [own.first!...own.last!] }
        var spans: [ClosedRange<Int>] = []
        var isOpen = false
        for (index, row) in present {
            let isAlive = row.alive.contains(column.machine)
            if isAlive, isOpen { spans[spans.count - 1] = spans.last!.lowerBound...index }
            if isAlive, !isOpen { spans.append(index...index) }
            isOpen = isAlive && !(row.isLast && row.event.lane == column.machine)
        }
        return spans
    }

    // MARK: Rows

    private func row(_ line: Int, _ run: Int) -> Rows.Row? {
        guard case .rows(let pair) = lines[line] else { return nil }
        return pair[run].map { runs[run].rows[$0] }
    }

    private func line(_ index: Int) -> String {
        if case .gap(let count) = lines[index] {
            return text(left(of: 0), y(index) + 4, "⋮ \(count) event\(count == 1 ? "" : "s")", class: "time")
        }
        let rows = runs.indices.map { row(index, $0) }
        var kinds = ["row"]
        if rows.contains(where: { $0?.isDeparture ?? false }) { kinds.append("departure") }
        if rows[0]?.has(step) ?? false { kinds.append("cause") }
        if rows.contains(where: { $0 == nil }) { kinds.append("alone") }
        let titles = zip(rows, choices).compactMap { row, choices in row?.title(choices) }
        let title = titles.count == 2 && titles[0] == titles[1] ? titles[0] : titles.joined(separator: "\n\n")
        let back =
            "<rect x=\"0\" y=\"\(y(index) - Self.lineHeight / 2)\" width=\"\(size.width)\" height=\"\(Self.lineHeight)\"/>"
        let parts = rows.enumerated().compactMap { run, row in row.map { draw($0, index, run) } }
        return "<g class=\"\(kinds.joined(separator: " "))\"><title>\(title.markup)</title>\(back)\(parts.joined())</g>"
    }

    private func draw(_ row: Rows.Row, _ line: Int, _ run: Int) -> String {
        let event = row.event
        var words = event.shortWords
        if words.count > Self.mostLetters { words = words.prefix(Self.mostLetters - 1) + "…" }
        if run == 0, row.has(step) { words += " ⇐ step \(step!)" }
        let end = left(of: run) + Self.timeWidth + columns.all.count * Self.columnWidth
        return text(left(of: run), y(line) + 4, "\(event.date)", class: "time") + mark(row, line, run)
            + text(end, y(line) + 4, words, class: "words")
    }

    private func mark(_ row: Rows.Row, _ line: Int, _ run: Int) -> String {
        let (to, y) = (x(Columns.Column(of: row.event), run), y(line))
        if let sender = row.event.sender, sender != row.event.lane {
            let from = x(Columns.Column(sender), run)
            let side = from < to ? -1 : 1
            let head = row.event.isLost ? cross(to + side * 10, y) : arrow(to, y, side)
            return "<path class=\"message\" d=\"M\(from) \(y)H\(to + side * 10)\"/>\(head)"
        }
        return row.isLast ? cross(to, y) : "<circle cx=\"\(to)\" cy=\"\(y)\" r=\"4\"/>"
    }

    private func cross(_ x: Int, _ y: Int) -> String {
        "<path class=\"end\" d=\"M\(x - 5) \(y - 5)L\(x + 5) \(y + 5)M\(x - 5) \(y + 5)L\(x + 5) \(y - 5)\"/>"
    }

    private func arrow(_ x: Int, _ y: Int, _ side: Int) -> String {
        "<path class=\"arrow\" d=\"M\(x + side * 2) \(y)L\(x + side * 11) \(y - 4)V\(y + 4)Z\"/>"
    }

    private func text(_ x: Int, _ y: Int, _ words: String, class kind: String) -> String {
        "<text class=\"\(kind)\" x=\"\(x)\" y=\"\(y)\">\(words.markup)</text>"
    }
}

extension TracedEvent {
    /// The words of the event, with the thread.
    fileprivate var shortWords: String { (thread.map { "\($0): " } ?? "") + words }
}

extension Rows.Row {
    /// Returns the full description of the row.
    ///
    /// - Parameter all: the choices of the run.
    fileprivate func title(_ all: [Trace.Choice]) -> String {
        var lines = ["\(event.date) \(event.lane): \(event.fullWords)"]
        if let owner = event.owner { lines.append("on \(owner)") }
        if let place = event.place { lines.append("made at \(place)") }
        for (index, choice) in zip(choices, all[choices]) {
            let options = choice.names.isEmpty ? "\(choice.range)" : choice.names.joined(separator: ", ")
            lines.append("step \(index + 1), \(choice.place)@\(choice.step): \(choice.outcome), of \(options)")
        }
        return lines.joined(separator: "\n")
    }
}
