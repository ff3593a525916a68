internal import RunLoopCore

extension Simulation {
    /// The last forty events, drawn as text: time goes down, and each host has a lane, as has each of the test's own
    /// threads; with hosts, these are the host `test`. The picture fits on a screen of 120 columns, and omits time in
    /// which nothing happened. Names are whole. Only escapes may be longer than a line.
    ///
    /// The picture shows messages between hosts, changes of hosts and connections, escapes, and each ``note(_:)``.
    /// Fires of timers are shown if the simulation is traced, or if the test has the trait `.simulated` of
    /// RunLoopTesting.
    ///
    /// Any thread, even after the simulation has ended.
    public var picture: String {
        let contents = timeline.history.contents
        let rows = Rows(
            contents.events.map { .event(TracedEvent($0)) }, lanes: contents.lanes.map(\.name),
            alive: Set(contents.lanes.filter(\.wasAlive).map(\.name)))
        let shown = Array(rows.rows.indices.suffix(Picture.mostRows))
        var lines = ["seed \(seed), at \(now)\(isReproducible ? "" : ", not reproducible")"]
        lines += Picture(rows, shown, forgotten: contents.forgotten, step: nil).lines
        if !timeline.recordsLoops { lines.append("Timers are not shown, because the simulation is not traced.") }
        return lines.joined(separator: "\n")
    }
}

/// The rows of a run, drawn as text.
@_spi(Ports) public struct Picture {
    private let rows: Rows
    /// The numbers of the rows to draw.
    private let shown: [Int]
    private let forgotten: Int
    private let step: Int?
    private let lanes: [String]
    private let width: Int

    fileprivate static let (mostColumns, mostRows, mostLanes) = (120, 40, 12)
    /// The widths, in columns, of all lanes together and of one lane.
    private static let (laneColumns, lane) = (64, 5...16)

    /// Creates a picture of the rows around departures and around a step, and of the last rows.
    ///
    /// - Parameter step: the number of a choice, counted from 1.
    public init(_ rows: Rows, around step: Int?) {
        self.init(rows, rows.centred(on: step), forgotten: 0, step: step)
    }

    /// - Parameter forgotten: the number of events before the first row.
    fileprivate init(_ rows: Rows, _ shown: [Int], forgotten: Int, step: Int?) {
        (self.rows, self.shown, self.forgotten, self.step) = (rows, shown, forgotten, step)
        // The lanes that take part, or the first of them if there are too many.
        let names = Set(shown.flatMap { rows.rows[$0].event.lanes })
        lanes = Array(rows.lanes.filter(names.contains).prefix(Self.mostLanes))
        let longest = (lanes.map(\.count).max() ?? 0) + 2
        let isNarrow = longest > Self.lane.upperBound || longest * lanes.count > Self.laneColumns
        width = isNarrow ? Self.lane.lowerBound : max(longest, Self.lane.lowerBound)
    }

    /// The lines of the picture, of at most 120 columns.
    public var lines: [String] {
        guard !shown.isEmpty else { return ["nothing has happened"] }
        let timeWidth = shown.map { "\(rows.rows[$0].event.date)".count }.max()!
        func line(_ time: String, _ cells: String, _ text: String) -> String {
            let room = Self.mostColumns - timeWidth - 2 - cells.count
            // An escape names a task and its place, which the reader needs.
            let isCut = text.count > room && !text.contains("escape: ")
            let end = isCut ? text.prefix(room - 1) + "…" : text[...]
            var line = String(repeating: " ", count: timeWidth - time.count) + time + "  " + cells + end
            while line.last == " " { line.removeLast() }
            return line
        }
        var result: [String] = []
        let earlier = forgotten + shown[0]
        if earlier > 0 { result.append(line("⋮", "", "after \(earlier) earlier event\(earlier == 1 ? "" : "s")")) }
        result += heads.enumerated().map { line($0 == 0 ? "time" : "", $1, "") }
        var (last, next) = ("", shown[0])
        for index in shown {
            if index > next { result.append(line("⋮", "", "\(index - next) event\(index - next == 1 ? "" : "s")")) }
            let row = rows.rows[index]
            let time = "\(row.event.date)"
            result.append(line(time == last && index == next ? "" : time, cells(row), text(row)))
            (last, next) = (time, index + 1)
        }
        return result
    }

    /// The names of the lanes: on one line, or each on its own line above its lane.
    private var heads: [String] {
        let isNarrow = lanes.contains { $0.count >= width }
        guard isNarrow else { return [lanes.map { $0.padded(to: width) }.joined()] }
        return lanes.indices.map { index in
            String(repeating: "│".padded(to: width), count: index) + lanes[index]
        }
    }

    private func cells(_ row: Rows.Row) -> String {
        var cells = [Character](repeating: " ", count: lanes.count * width)
        for (index, lane) in lanes.enumerated() where row.alive.contains(lane) { cells[index * width] = "│" }
        func column(_ name: String) -> Int? { lanes.firstIndex(of: name).map { $0 * width } }
        let event = row.event
        guard let sender = event.sender, sender != event.lane, let from = column(sender), let to = column(event.lane)
        else {
            if let place = column(event.lane) { cells[place] = row.isLast ? "✕" : "●" }
            return String(cells)
        }
        for column in min(from, to) + 1..<max(from, to) { cells[column] = cells[column] == "│" ? "┼" : "─" }
        cells[from] = from < to ? "├" : "┤"
        let head = from < to ? to - 1 : to + 1
        cells[head] = event.isLost ? "✕" : from < to ? "▶" : "◀"
        return String(cells)
    }

    private func text(_ row: Rows.Row) -> String {
        let event = row.event
        // An event without a lane in the picture names its place.
        let place = event.lanes.allSatisfy(lanes.contains) ? "" : "\(event.lanes.joined(separator: " to ")): "
        let thread = event.thread.map { "\($0): " } ?? ""
        let arrow = row.isDeparture && !event.words.contains("←") ? " ←" : ""
        return place + thread + event.words + arrow + (row.has(step) ? " ⇐ step \(step!)" : "")
    }
}

extension String {
    fileprivate func padded(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}
