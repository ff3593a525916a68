internal import RunLoopKit

/// The chart of a play for the terminal: a lane for each timer, time to the right, and the events in words.
package struct TextChart {
    private let chart: Chart
    private let events: [ScenarioEvent]
    private let decimals: Int

    /// Creates the chart of a scenario and of the events of playing it.
    package init(scenario: Scenario, events: [ScenarioEvent]) {
        chart = Chart(scenario: scenario, events: events)
        self.events = events
        // As many decimals as the times have; but times of a real clock have nine, more than anyone reads.
        let times = events.map(\.t) + events.compactMap(\.due)
        let micros = times.allSatisfy { $0 % 1_000 == 0 }
        let millis = times.allSatisfy { $0 % 1_000_000 == 0 }
        decimals = millis ? 3 : micros ? 6 : chart.length >= 1_000_000_000 ? 3 : 9
    }

    /// Returns the chart in at most `width` columns (but at least 40), then the events, one a line, and a legend.
    package func render(width: Int = 100) -> String {
        (rows(width: width) + [""] + list() + ["", TextChart.legend]).joined(separator: "\n") + "\n"
    }

    /// Returns the chart alone, row by row.
    package func rows(width: Int = 100) -> [String] {
        let names = chart.threads.flatMap(\.lanes).map { Self.short(escaped($0.name)) }
        let gutter = (names + ["mode"] + chart.others.map(\.name)).map(\.count).max() ?? 0
        let canvas = Canvas(columns: max(40, width) - gutter - 4, length: chart.length)
        var lines: [String] = []
        func add(_ name: String, _ cells: [Character]) {
            var row = "  " + name + String(repeating: " ", count: gutter - name.count + 2) + String(cells)
            while row.last == " " { row.removeLast() }
            lines.append(row)
        }
        let deepest = max(1, chart.bands.map(\.depth).max() ?? 1)
        for depth in 1...deepest { add(depth == 1 ? "mode" : "", canvas.modes(chart.bands, depth: depth)) }
        if !chart.main.busy.isEmpty { add("busy", canvas.busy(chart.main.busy)) }
        for lane in chart.main.lanes { add(Self.short(escaped(lane.name)), canvas.lane(lane)) }
        for thread in chart.others {
            add(thread.name, canvas.busy(thread.busy, idle: "╌"))
            for lane in thread.lanes { add(Self.short(escaped(lane.name)), canvas.lane(lane)) }
        }
        let (scale, labels) = canvas.axis(chart)
        add("", scale)
        add("s", labels)
        return lines
    }

    private static func short(_ name: String) -> String {
        name.count > 16 ? name.prefix(15) + "…" : name
    }

    // MARK: Words

    private func list() -> [String] {
        let times = events.map { time($0.t) }
        let timeWidth = times.map(\.count).max() ?? 0
        let fireWidth = events.filter { $0.mode != nil }.map { words($0).count }.max() ?? 0
        return zip(events, times).map { event, time in
            var line = "  " + String(repeating: " ", count: timeWidth - time.count) + time + "  " + words(event)
            if let mode = event.mode {
                line += String(repeating: " ", count: fireWidth - words(event).count) + "   (\(escaped(mode)))"
            }
            if let thread = event.thread, thread != "main" { line += "   on \(escaped(thread))" }
            return line
        }
    }

    /// Returns the words of a fire, with its due date as the chart shows it, or the usual words for other events.
    private func words(_ event: ScenarioEvent) -> String {
        switch event.kind {
        case .fire(let name, let count, _, let due, let missed, let manual):
            var words = "\(escaped(name)) fires\(manual ? " by hand" : ""), no. \(count)"
            if due != event.t || manual { words += ", due \(time(due))" }
            if missed > 0 { words += ", \(missed) missed" }
            return words
        case .delivery(let name, let count, _, let due, let data):
            return "\(escaped(name)) fires, no. \(count)" + (due != event.t ? ", due \(time(due))" : "")
                + (data > 1 ? ", data \(data)" : "")
        case .frame(let name, let count, _, let timestamp, let dropped):
            return "\(escaped(name)) is called, no. \(count)"
                + (timestamp != event.t ? ", frame of \(time(timestamp))" : "")
                + (dropped > 0 ? ", \(dropped) dropped" : "")
        default:
            return event.plainWords
        }
    }

    private func time(_ t: Int64) -> String { "+" + roundedSeconds(t, decimals: decimals, atLeast: decimals) }

    /// The meaning of the signs.
    package static let legend =
        "  ● fires on time   ▲ fires late   ◆ fired by hand   ○ due, fired late   · due, missed\n"
        + "  ✕ invalidated or cancelled   † target deinitialised   █ busy   ░ nested run"
}

/// Rows of cells, and the column of each time in them.
private struct Canvas {
    let columns: Int
    let length: Int64

    /// Room to the right of the last moment, for marks that are pushed aside and for the last label.
    private static let margin = 6

    private var last: Int { columns - Self.margin - 1 }
    private var empty: [Character] { Array(repeating: " ", count: columns) }

    private func column(_ t: Int64) -> Int {
        let part = Double(min(max(t, 0), length)) / Double(length)
        return Int((part * Double(last)).rounded())
    }

    /// Returns the columns from one time to another: at least one, so that nothing short vanishes.
    private func columns(_ span: Chart.Span) -> Range<Int> {
        let start = column(span.start)
        return start..<max(start + 1, column(span.end))
    }

    /// Returns the runs at a depth, in one row: the mode that runs in a column is named by its lowest row.
    func modes(_ bands: [Chart.Band], depth: Int) -> [Character] {
        var cells = empty
        for band in bands where band.depth == depth {
            let span = columns(band.span)
            for column in span { cells[column] = "░" }
            let label = Array(" \(escaped(band.mode)) ")
            guard label.count + 1 <= span.count else { continue }
            cells.replaceSubrange(span.lowerBound + 1..<span.lowerBound + 1 + label.count, with: label)
        }
        let outermost = "default"
        if depth == 1, cells.prefix(outermost.count).allSatisfy({ $0 == " " }) {
            cells.replaceSubrange(0..<outermost.count, with: outermost)
        }
        return cells
    }

    func busy(_ spans: [Chart.Span], idle: Character = " ") -> [Character] {
        var cells = empty
        for column in 0...last { cells[column] = idle }
        for span in spans {
            for column in columns(span) { cells[column] = "█" }
        }
        return cells
    }

    func lane(_ lane: Chart.Lane) -> [Character] {
        var cells = empty
        for points in lane.missed {
            for point in points.thinned(to: max(1, length / Int64(columns))) { cells[column(point)] = "·" }
        }
        for fire in lane.fires where fire.look == .late { cells[column(fire.due)] = "○" }
        // Late fires last: of several fires in a cell, the late one matters.
        for look in [Chart.Look.onTime, .manual, .late] {
            for fire in lane.fires where fire.look == look { cells[column(fire.t)] = look.symbol }
        }
        for mark in lane.marks {
            var column = column(mark.t)
            while column < columns - 1, !" ·○".contains(cells[column]) { column += 1 }
            cells[column] = mark.isDeinit ? "†" : "✕"
        }
        return cells
    }

    func axis(_ chart: Chart) -> (scale: [Character], labels: [Character]) {
        var scale = empty
        var labels = empty
        for column in 0...last { scale[column] = "─" }
        for tick in chart.ticks(atMost: max(2, last / 9)) {
            scale[column(tick)] = "┬"
            let label = Array(decimalSeconds(tick, decimals: 0))
            let start = max(0, column(tick) - label.count / 2)
            guard start + label.count <= columns, start == 0 || labels[start - 1] == " " else { continue }
            labels.replaceSubrange(start..<start + label.count, with: label)
        }
        return (scale, labels)
    }
}

extension Chart.Look {
    fileprivate var symbol: Character {
        switch self {
        case .onTime: "●"
        case .late: "▲"
        case .manual: "◆"
        }
    }
}

extension ScenarioEvent {
    fileprivate var due: Int64? {
        switch kind {
        case .fire(_, _, _, let due, _, _), .delivery(_, _, _, let due, _), .frame(_, _, _, let due, _): due
        default: nil
        }
    }

    /// The main loop's mode during a fire of any kind.
    fileprivate var mode: String? {
        switch kind {
        case .fire(_, _, let mode, _, _, _), .frame(_, _, let mode, _, _), .tick(_, _, let mode, _): mode
        case .delivery(_, _, let mode, _, _), .action(_, _, let mode, _, _): mode
        default: nil
        }
    }
}
