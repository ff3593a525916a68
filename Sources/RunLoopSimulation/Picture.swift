internal import RunLoopCore

extension Simulation {
    /// A picture of the last events: time goes down, and each host has a lane, as has each of the test's own threads;
    /// with hosts, these are the host `test`. It fits on a screen of 120 columns: it has the last forty events, and
    /// omits time in which nothing happened. Only escapes may be longer than a line.
    ///
    /// It shows messages between hosts, changes of hosts and connections, escapes, and each ``note(_:)``. Fires of
    /// timers are shown if the simulation is traced, or if the test has the trait `.simulated` of RunLoopTesting.
    ///
    /// Any thread, also when the simulation is over.
    public var picture: String {
        var lines =
            ["seed \(seed), at \(now)\(isReproducible ? "" : ", not reproducible")"] + Picture(timeline.history).lines
        if !timeline.recordsLoops { lines.append("Timers are not shown, because the simulation is not traced.") }
        return lines.joined(separator: "\n")
    }
}

/// Draws recorded events of a simulation.
package func picture(of events: some Sequence<Trace.Event>, seed: UInt64) -> String {
    let history = History(events)
    let end = history.contents.events.last?.date ?? RunLoop.Instant(nanoseconds: 0)
    return (["seed \(seed), at \(end)"] + Picture(history).lines).joined(separator: "\n")
}

/// The last events of a history, drawn.
private struct Picture {
    private let lanes: [History.Lane]
    private let events: [History.Event]
    private let forgotten: Int
    /// The width of a lane.
    private let width: Int

    private static let (mostColumns, mostRows, mostLanes) = (120, 40, 12)
    /// The columns that all lanes may take, and one lane.
    private static let (laneColumns, lane) = (64, 5...14)

    init(_ history: History) {
        let contents = history.contents
        let rows = contents.events.indices.filter { contents.events[$0].hasRow }
        let start = rows.count > Self.mostRows ? rows[rows.count - Self.mostRows] : 0
        events = Array(contents.events[start...])
        forgotten = contents.forgotten + contents.events[..<start].count { $0.hasRow }
        // The lanes that take part, the first ones if they are too many.
        let names = events.filter(\.hasRow).flatMap(\.lanes)
        let others = names.filter { name in !contents.lanes.contains { $0.name == name } }
        var known = contents.lanes.filter { names.contains($0.name) }
        for name in others where !known.contains(where: { $0.name == name }) { known.append(.init(name: name)) }
        lanes = Array(known.prefix(Self.mostLanes))
        let longest = (lanes.map(\.name.count).max() ?? 0) + 2
        width = min(max(longest, Self.lane.lowerBound), Self.lane.upperBound, Self.laneColumns / max(1, lanes.count))
    }

    var lines: [String] {
        guard events.contains(where: \.hasRow) else { return ["nothing has happened"] }
        let dates = events.filter(\.hasRow).map { "\($0.date)" }
        let timeWidth = dates.map(\.count).max()!
        func line(_ time: String, _ cells: String, _ text: String) -> String {
            let room = Self.mostColumns - timeWidth - 2 - cells.count
            // An escape names a task and its place, which the reader needs.
            let isCut = text.count > room && !text.contains("escape: ")
            let end = isCut ? text.prefix(room - 1) + "…" : text[...]
            var line = String(repeating: " ", count: timeWidth - time.count) + time + "  " + cells + end
            while line.last == " " { line.removeLast() }
            return line
        }
        let heads = lanes.map { lane in
            let name = short(lane.name)
            return name + String(repeating: " ", count: width - name.count)
        }
        var result: [String] = []
        if forgotten > 0 {
            result.append(line("⋮", "", "after \(forgotten) earlier event\(forgotten == 1 ? "" : "s")"))
        }
        result.append(line("time", heads.joined(), ""))
        var last = ""
        for (index, isAlive) in lives.enumerated() where events[index].hasRow {
            let event = events[index]
            let time = "\(event.date)"
            let cells = cells(event, isAlive, isLast: index + 1 < events.count && events[index + 1].ends(event.lane))
            result.append(line(time == last ? "" : time, cells, text(event)))
            last = time
        }
        return result
    }

    /// A name short enough to leave room beside it. Names of one kind differ at their ends.
    private func short(_ name: String) -> String {
        guard name.count >= width else { return name }
        return name.prefix((width - 2) / 2) + "…" + name.suffix(width - 2 - (width - 2) / 2)
    }

    /// The lanes that are alive after each event, counted back from now.
    private var lives: [[Bool]] {
        var alive = lanes.map(\.isAlive)
        var result: [[Bool]] = []
        for event in events.reversed() {
            result.append(alive)
            guard let index = lanes.firstIndex(where: { $0.name == event.lane }) else { continue }
            switch event.what {
            case .began: alive[index] = false
            case .ended: alive[index] = true
            case .note, .loop, .message: break
            }
        }
        return result.reversed()
    }

    /// - Parameter isLast: whether it is the last event of the lane's process.
    private func cells(_ event: History.Event, _ isAlive: [Bool], isLast: Bool) -> String {
        var cells = [Character](repeating: " ", count: lanes.count * width)
        for (index, isAlive) in isAlive.enumerated() where isAlive { cells[index * width] = "│" }
        func column(_ name: String) -> Int? { lanes.firstIndex { $0.name == name }.map { $0 * width } }
        guard case .message(let message, let sender) = event.what, sender != event.lane, let from = column(sender),
            let to = column(event.lane)
        else {
            if let place = column(event.lane) { cells[place] = isLast ? "✕" : "●" }
            return String(cells)
        }
        for column in min(from, to) + 1..<max(from, to) { cells[column] = cells[column] == "│" ? "┼" : "─" }
        cells[from] = from < to ? "├" : "┤"
        let head = from < to ? to - 1 : to + 1
        if case .lost = message { cells[head] = "✕" } else { cells[head] = from < to ? "▶" : "◀" }
        return String(cells)
    }

    private func text(_ event: History.Event) -> String {
        // An event without a lane in the picture names its place.
        let isSeen = event.lanes.allSatisfy { name in lanes.contains { $0.name == name } }
        let place = isSeen ? "" : "\(event.lanes.joined(separator: " to ")): "
        return place + event.words
    }
}

extension History.Event {
    /// Whether the lane has no thread from then on.
    fileprivate func ends(_ lane: String) -> Bool {
        if case .ended = what { self.lane == lane } else { false }
    }

    /// The lanes that it touches.
    fileprivate var lanes: [String] {
        if case .message(_, let sender) = what { [sender, lane] } else { [lane] }
    }
}
