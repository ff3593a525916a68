import RunLoopKit

/// A picture of a flight over its time: a row for each depth of nesting, with the runs in their modes behind the calls, and
/// the lateness of timers below.
///
/// The picture is self-contained, and its size does not grow with the number of calls: calls narrower than a pixel are
/// drawn together, darker the more time they took.
struct FlightChart {
    private static let (left, width, rowHeight) = (60.0, 1100.0, 22.0)
    private static let tints = ["#dbe9f6", "#fde5cf", "#dff0d8", "#f3dcef", "#f7f0c6", "#d9eeee"]

    private let flight: Flight
    private let calls: [Flight.Call]
    private let (begin, end): (RunLoop.Instant, RunLoop.Instant)
    private let depth: Int
    /// The modes, in the order of their appearance.
    private let modes: [String]

    init(_ flight: Flight) {
        self.flight = flight
        calls = flight.calls
        begin = flight.entries.first?.time ?? flight.begin
        end = max(flight.entries.last?.time ?? begin, begin + .nanoseconds(1))
        depth = (flight.entries.map(\.depth).max() ?? 0) + 1
        var modes: [String] = []
        for entry in flight.entries {
            if case .runBegan(let mode) = entry.event, !modes.contains(mode) { modes.append(mode) }
        }
        for call in calls where !modes.contains(call.mode) { modes.append(call.mode) }
        self.modes = modes
    }

    /// The picture as an element of a page, or as a document of its own.
    var svg: String {
        let lateTop = Double(depth) * Self.rowHeight + 6
        let height = lateTop + 34
        var body = runs() + callBars() + lateness(top: lateTop) + axis(bottom: lateTop + 14)
        for (number, mode) in modes.enumerated() {
            let x = Self.left + Double(number) * 150
            body += "<rect x=\"\(x.coordinate)\" y=\"\((height + 2).coordinate)\" width=\"10\" height=\"10\" "
            body += "fill=\"\(tint(of: mode))\"/><text x=\"\((x + 15).coordinate)\" y=\"\((height + 11).coordinate)\">"
            body += "mode \(mode.markup)</text>\n"
        }
        let size = "\((Self.left + Self.width + 40).coordinate) \((height + 18).coordinate)"
        return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 \(size)\" font-family=\"sans-serif\" "
            + "font-size=\"11\" fill=\"#333\">\n<title>\(flight.loop.markup), process \(flight.process)</title>\n\(body)</svg>\n"
    }

    private func x(_ time: RunLoop.Instant) -> Double {
        let part = (min(max(time, begin), end) - begin) / (end - begin)
        return Self.left + part * Self.width
    }

    private func y(_ depth: Int) -> Double { Double(depth) * Self.rowHeight }

    private func tint(of mode: String) -> String {
        Self.tints[(modes.firstIndex(of: mode) ?? 0) % Self.tints.count]
    }

    /// Draws the runs behind the calls. A run whose beginning is lost was under way from the start.
    private func runs() -> String {
        var text = ""
        var open: [(mode: String, begin: RunLoop.Instant, depth: Int)] = []
        func draw(_ mode: String, _ from: RunLoop.Instant, _ to: RunLoop.Instant, _ depth: Int) {
            let width = max(0.5, x(to) - x(from))
            text += "<rect class=\"run\" x=\"\(x(from).coordinate)\" y=\"\(y(depth).coordinate)\" "
            text +=
                "width=\"\(width.coordinate)\" height=\"\((Self.rowHeight - 2).coordinate)\" fill=\"\(tint(of: mode))\"/>\n"
        }
        for entry in flight.entries {
            switch entry.event {
            case .runBegan(let mode): open.append((mode, entry.time, entry.depth))
            case .runEnded(let mode):
                let run = open.popLast() ?? (mode, begin, entry.depth)
                // Runs of no length would hide others: only visible ones are drawn.
                if x(entry.time) - x(run.begin) >= 0.5 { draw(run.mode, run.begin, entry.time, run.depth) }
            default: continue
            }
        }
        for run in open { draw(run.mode, run.begin, end, run.depth) }
        return text
    }

    private func callBars() -> String {
        var text = ""
        /// The share of each pixel's time taken by narrow calls, by depth.
        var narrow = [[Double]](repeating: Array(repeating: 0, count: Int(Self.width) + 1), count: depth)
        for call in calls {
            let (left, right) = (x(call.begin), call.duration.map { x(call.begin + $0) } ?? x(end))
            guard right - left < 1, call.duration != nil else {
                text += bar(call, left, max(1, right - left))
                continue
            }
            narrow[min(call.depth, depth - 1)][Int(left - Self.left)] += right - left
        }
        for (depth, pixels) in narrow.enumerated() {
            for (pixel, share) in pixels.enumerated() where share > 0 {
                let shade = min(1, 0.25 + share)
                text += "<rect class=\"narrow\" x=\"\((Self.left + Double(pixel)).coordinate)\" "
                text += "y=\"\((y(depth) + 4).coordinate)\" width=\"1\" height=\"\((Self.rowHeight - 10).coordinate)\" "
                text += "fill=\"#2b5c8a\" opacity=\"\(shade.coordinate)\"/>\n"
            }
        }
        return text
    }

    private func bar(_ call: Flight.Call, _ left: Double, _ width: Double) -> String {
        let name = call.handler.map { "\($0)" } ?? "a handler without a name"
        let state = call.duration.map { "took \($0)" } ?? "is under way at the end"
        let fill = call.duration == nil ? "#b3261e" : "#2b5c8a"
        return "<rect class=\"call\" x=\"\(left.coordinate)\" y=\"\((y(call.depth) + 4).coordinate)\" "
            + "width=\"\(width.coordinate)\" height=\"\((Self.rowHeight - 10).coordinate)\" fill=\"\(fill)\">"
            + "<title>\("\(call.begin) \(name) \(state)".markup)</title></rect>\n"
    }

    /// Draws a line from the date of a late timer to its call, if it is visible.
    private func lateness(top: Double) -> String {
        var (text, last) = ("", -1.0)
        for call in calls {
            guard let lateness = call.lateness else { continue }
            let (left, right) = (x(call.begin - lateness), x(call.begin))
            guard right - left >= 0.5, right - last >= 0.5 else { continue }
            last = right
            text +=
                "<path class=\"late\" d=\"M\(left.coordinate) \(top.coordinate)H\(right.coordinate)\" stroke=\"#b3261e\" "
            text +=
                "stroke-width=\"3\"><title>\("\(call.handler.map { "\($0)" } ?? "") \(lateness) late".markup)</title></path>\n"
        }
        return text + "<text x=\"4\" y=\"\((top + 4).coordinate)\">late</text>\n"
    }

    private func axis(bottom: Double) -> String {
        let span = (end - begin) / .seconds(1)
        var step = 1e-9
        while span / step > 10 { step *= span / step > 20 ? (span / step > 50 ? 10 : 5) : 2 }
        var text = ""
        for number in 0...Int(span / step) {
            let x = Self.left + Double(number) * step / span * Self.width
            let label = "+\(Duration.nanoseconds(Int64((Double(number) * step * 1e9).rounded())).inWords)"
            text += "<path d=\"M\(x.coordinate) 0V\(bottom.coordinate)\" stroke=\"#999\" stroke-width=\"0.4\"/>"
            text +=
                "<text x=\"\(x.coordinate)\" y=\"\((bottom + 12).coordinate)\" text-anchor=\"middle\">\(label)</text>\n"
        }
        return text
    }
}

extension Duration {
    /// The duration in the largest unit in which it is at least 1, with at most three decimals.
    var inWords: String {
        let nanoseconds = self / .nanoseconds(1)
        for (unit, size) in [("s", 1e9), ("ms", 1e6), ("µs", 1e3)] where abs(nanoseconds) >= size {
            let thousandths = Int((nanoseconds / size * 1000).rounded())
            return (thousandths % 1000 == 0 ? "\(thousandths / 1000)" : "\(Double(thousandths) / 1000)") + " \(unit)"
        }
        return "\(Int(nanoseconds.rounded())) ns"
    }
}
