/// What was played, as a picture: a lane for each timer, with the modes and the busy work of the loop behind them.
///
/// The picture needs nothing but itself, and the same events give the same bytes.
public struct TimelineSVG {
    private let timeline: Timeline
    private let title: String?
    private let tints: [String: Tint]

    /// Prepares the picture of a scenario and of the events that playing it gave.
    public init(scenario: Scenario, events: [ScenarioEvent], title: String? = nil) {
        timeline = Timeline(scenario: scenario, events: events)
        self.title = title
        var tints = ["default": Tint.plain, "tracking": Tint.amber]
        for mode in timeline.bands.map(\.mode) where tints[mode] == nil {
            tints[mode] = Tint.others[(tints.count - 2) % Tint.others.count]
        }
        self.tints = tints
    }

    /// The SVG document.
    public func render() -> String {
        var drawing = Drawing()
        drawBackground(&drawing)
        drawBusyWork(&drawing)
        drawAxis(&drawing)
        for (index, lane) in timeline.lanes.enumerated() { draw(lane, y: laneTop(index), &drawing) }
        let bottom = drawLegend(&drawing)
        return drawing.document(width: Self.width, height: bottom, title: title ?? "Timeline")
    }

    // MARK: Where things are

    private static let width = 960.0
    private static let (plotLeft, plotRight) = (150.0, 930.0)
    private static let (modeHeight, laneHeight) = (22.0, 66.0)

    private var modesTop: Double { title == nil ? 16 : 56 }
    private var lanesTop: Double {
        let rows = 1 + (timeline.bands.map(\.depth).max() ?? 0)
        return modesTop + Double(rows) * Self.modeHeight + 8
    }
    private var lanesBottom: Double { laneTop(timeline.lanes.count) }

    private func laneTop(_ index: Int) -> Double { lanesTop + Double(index) * Self.laneHeight }

    private func x(_ t: Int64) -> Double {
        let part = Double(min(max(t, 0), timeline.length)) / Double(timeline.length)
        return Self.plotLeft + part * (Self.plotRight - Self.plotLeft)
    }

    private func time(pixels: Double) -> Int64 {
        max(1, Int64(Double(timeline.length) / (Self.plotRight - Self.plotLeft) * pixels))
    }

    // MARK: Behind the lanes

    /// The modes: each nested run starts a row lower than the one it is in, and reaches behind all lanes.
    private func drawBackground(_ drawing: inout Drawing) {
        if let title { drawing.text(24, 34, title, size: 17, weight: 600) }
        let outermost = Timeline.Band(mode: "default", depth: 0, span: .init(start: 0, end: timeline.length))
        drawing.text(24, modesTop + 15, "mode", fill: Ink.quiet)
        for band in [outermost] + timeline.bands {
            guard let tint = tints[band.mode] else { continue }
            let (left, right) = (x(band.span.start), max(x(band.span.start) + 1, x(band.span.end)))
            let top = modesTop + Double(band.depth) * Self.modeHeight
            let fill = band.depth == 0 ? "#ffffff" : tint.fill
            drawing.rectangle(left, top, right - left, lanesBottom - top, "fill=\"\(fill)\" stroke=\"\(tint.edge)\"")
            guard Drawing.length(band.mode, size: 12) + 12 <= right - left else { continue }
            drawing.text(left + 7, top + 15, band.mode, weight: 600, fill: tint.ink)
        }
    }

    private func drawBusyWork(_ drawing: inout Drawing) {
        var labelled = -Double.infinity
        for span in timeline.busy {
            let (left, right) = (x(span.start), max(x(span.start) + 1, x(span.end)))
            let (width, height) = (right - left, lanesBottom - lanesTop)
            drawing.rectangle(left, lanesTop, width, height, "fill=\"url(#busy)\" stroke=\"\(Ink.busy)\"")
            guard width >= 40, left >= labelled else { continue }
            drawing.rectangle(left + 4, lanesTop + 4, 34, 16, "rx=\"3\" fill=\"#ffffff\" fill-opacity=\"0.85\"")
            drawing.text(left + 21, lanesTop + 16, "busy", size: 11, weight: 600, fill: Ink.label, anchor: "middle")
            labelled = right
        }
    }

    private func drawAxis(_ drawing: inout Drawing) {
        drawing.line(Self.plotLeft, lanesBottom, Self.plotRight, lanesBottom, "stroke=\"\(Ink.label)\"")
        for tick in timeline.ticks(atMost: 12) {
            drawing.line(x(tick), lanesTop, x(tick), lanesBottom, "stroke=\"\(Ink.label)\" stroke-opacity=\"0.12\"")
            drawing.line(x(tick), lanesBottom, x(tick), lanesBottom + 5, "stroke=\"\(Ink.label)\"")
            let label = decimalSeconds(tick, decimals: 0) + " s"
            drawing.text(x(tick), lanesBottom + 20, label, fill: Ink.label, anchor: "middle")
        }
    }

    // MARK: A lane

    /// Due points stand on the line of the lane, fires above it: a fire on time is right above its due point, and what
    /// is late leans to the right.
    private func draw(_ lane: Timeline.Lane, y top: Double, _ drawing: inout Drawing) {
        let (fireY, dueY) = (top + 28, top + 50)
        drawing.text(24, top + 36, Drawing.cut(lane.name, to: 110, size: 14), size: 14, weight: 600)
        if let note = Self.note(lane.timer) {
            drawing.text(24, top + 52, Drawing.cut(note, to: 120, size: 11), size: 11, fill: Ink.quiet)
        }
        let end = lane.marks.first { !$0.isDeinit }.map { x($0.t) } ?? Self.plotRight
        drawing.line(Self.plotLeft, dueY, end, dueY, "stroke=\"\(Ink.line)\" stroke-width=\"1.5\"")
        for span in lane.busy {
            let width = max(1, x(span.end) - x(span.start))
            drawing.rectangle(x(span.start), fireY - 5, width, 10, "fill=\"\(Ink.busy)\" fill-opacity=\"0.8\"")
        }
        for points in lane.missed {
            for point in points.thinned(to: time(pixels: 3)) { drawing.circle(x(point), dueY, 4, Ink.missed) }
        }
        draw(lane.fires, fireY, dueY, &drawing)
        draw(lane.marks, of: lane, fireY, &drawing)
    }

    private static func note(_ timer: Scenario.TimerEntry?) -> String? {
        guard let timer else { return nil }
        let when = timer.repeats ? "every \(decimalSeconds(timer.interval, decimals: 0)) s" : "once"
        return "\(when), \(timer.modes.joined(separator: " + "))"
    }

    private func draw(_ fires: [Timeline.Fire], _ fireY: Double, _ dueY: Double, _ drawing: inout Drawing) {
        let positions = fires.map { x($0.t) }
        let nearest = zip(positions, positions.dropFirst()).map { $1 - $0 }.min() ?? .infinity
        let radius = nearest >= 17 ? 8.0 : nearest >= 9 ? 4.5 : 3
        var shown: [Timeline.Look: Double] = [:]
        var labelEnd = -Double.infinity
        for (fire, position) in zip(fires, positions) {
            // Fires of one look within a pixel of each other are one dot.
            if let before = shown[fire.look], position - before < 1 { continue }
            shown[fire.look] = position
            let colour = fire.look.colour
            if fire.look != .manual {
                let style = "stroke=\"\(colour)\" stroke-width=\"1.5\""
                drawing.line(x(fire.due), dueY, position, fireY, style)
                drawing.circle(x(fire.due), dueY, 4, "fill=\"#ffffff\" stroke=\"\(colour)\" stroke-width=\"1.5\"")
                drawing.dot(position, fireY, radius, colour)
            } else {
                drawing.diamond(position, fireY, radius + 1.5, colour)
            }
            if radius >= 8 {
                let label = "\(fire.count)"
                drawing.text(position, fireY + 3.5, label, size: 10, weight: 700, fill: "#ffffff", anchor: "middle")
            }
            guard fire.look == .late else { continue }
            let label = "\(roundedSeconds(fire.t - fire.due, decimals: 3)) s late"
            let length = Drawing.length(label, size: 11)
            let start = max(Self.plotLeft, min(position - length / 2, Self.plotRight - length))
            guard start >= labelEnd else { continue }
            drawing.haloed(start, fireY - 13, label, fill: colour)
            labelEnd = start + length + 8
        }
    }

    private func draw(_ marks: [Timeline.Mark], of lane: Timeline.Lane, _ y: Double, _ drawing: inout Drawing) {
        var taken = lane.fires.map { x($0.t) }
        for mark in marks {
            var position = x(mark.t)
            // Beside what happened at the same time, not on it.
            while taken.contains(where: { abs($0 - position) < 15 }), position < Self.plotRight + 12 { position += 1 }
            taken.append(position)
            if mark.isDeinit { drawing.square(position, y) } else { drawing.cross(position, y) }
        }
    }

    // MARK: The legend

    private func drawLegend(_ drawing: inout Drawing) -> Double {
        var (left, y) = (Self.plotLeft, lanesBottom + 48)
        for item in legend() {
            let needed = 22 + Drawing.length(item.label, size: 12)
            if left + needed > Self.plotRight, left > Self.plotLeft { (left, y) = (Self.plotLeft, y + 22) }
            item.draw(&drawing, left + 8, y)
            drawing.text(left + 22, y + 4, item.label, fill: Ink.label)
            left += needed + 20
        }
        return y + 22
    }

    /// What the picture has, and nothing else.
    private func legend() -> [LegendItem] {
        let looks = Set(timeline.lanes.flatMap { $0.fires.map(\.look) })
        let marks = Set(timeline.lanes.flatMap { $0.marks.map(\.isDeinit) })
        var items: [LegendItem] = []
        for look in [Timeline.Look.onTime, .late, .manual] where looks.contains(look) {
            items.append(LegendItem(label: look.label) { drawing, x, y in
                if look == .manual { drawing.diamond(x, y, 7, look.colour) } else { drawing.dot(x, y, 6, look.colour) }
            })
        }
        if !looks.isDisjoint(with: [.onTime, .late]) {
            items.append(LegendItem(label: "due") { $0.circle($1, $2, 4, "fill=\"#fff\" stroke=\"\(Ink.label)\"") })
        }
        if timeline.lanes.contains(where: { !$0.missed.isEmpty }) {
            items.append(LegendItem(label: "due, missed") { $0.circle($1, $2, 4, Ink.missed) })
        }
        if marks.contains(false) { items.append(LegendItem(label: "invalidated") { $0.cross($1, $2) }) }
        if marks.contains(true) { items.append(LegendItem(label: "target deinitialised") { $0.square($1, $2) }) }
        if !timeline.busy.isEmpty {
            items.append(LegendItem(label: "loop busy") {
                $0.rectangle($1 - 7, $2 - 6, 14, 12, "fill=\"url(#busy)\" stroke=\"\(Ink.busy)\"")
            })
        }
        var seen: Set<String> = []
        for mode in timeline.bands.map(\.mode) where seen.insert(mode).inserted {
            guard let tint = tints[mode] else { continue }
            items.append(LegendItem(label: "in \(mode)") {
                $0.rectangle($1 - 7, $2 - 6, 14, 12, "fill=\"\(tint.fill)\" stroke=\"\(tint.edge)\"")
            })
        }
        return items
    }
}

private struct LegendItem {
    let label: String
    let draw: (inout Drawing, Double, Double) -> Void
}

// MARK: - Colours

private enum Ink {
    static let (text, label, quiet) = ("#1f2328", "#424a53", "#656d76")
    static let (line, busy) = ("#afb8c1", "#8c959f")
    static let missed = "fill=\"#ffffff\" stroke=\"#cf222e\" stroke-width=\"1.5\" stroke-dasharray=\"2 1.5\""
}

private struct Tint {
    let fill: String
    let edge: String
    let ink: String

    static let plain = Tint(fill: "#f6f8fa", edge: "#d0d7de", ink: "#656d76")
    static let amber = Tint(fill: "#fff1c9", edge: "#e3b341", ink: "#7d4e00")
    static let others = [
        Tint(fill: "#e7defc", edge: "#b197e8", ink: "#5a32a3"), Tint(fill: "#d6f2df", edge: "#74c690", ink: "#116329"),
        Tint(fill: "#d3eef5", edge: "#6cb8cf", ink: "#0a5a73"), Tint(fill: "#fde0ec", edge: "#e39abb", ink: "#99286e"),
    ]
}

extension Timeline.Look {
    fileprivate var colour: String {
        switch self {
        case .onTime: "#0969da"
        case .late: "#cf222e"
        case .manual: "#8250df"
        }
    }

    fileprivate var label: String {
        switch self {
        case .onTime: "fires on time"
        case .late: "fires late"
        case .manual: "fired by hand"
        }
    }
}

// MARK: - The document

/// The elements of the document, drawn in the order of the calls.
private struct Drawing {
    private var body: [String] = []

    mutating func rectangle(_ x: Double, _ y: Double, _ width: Double, _ height: Double, _ style: String) {
        let (x, y, width, height) = (px(x), px(y), px(width), px(height))
        body.append("<rect x=\"\(x)\" y=\"\(y)\" width=\"\(width)\" height=\"\(height)\" \(style)/>")
    }
}
