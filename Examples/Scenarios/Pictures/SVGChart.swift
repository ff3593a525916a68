/// The picture of a play: a lane for each timer, with the modes and the busy work of the loop behind them.
///
/// The picture is self-contained, and the same events give the same bytes.
package struct SVGChart {
    private let chart: Chart
    private let title: String?
    private let tints: [String: Tint]

    /// Creates the picture of a scenario and of the events of playing it.
    package init(scenario: Scenario, events: [ScenarioEvent], title: String? = nil) {
        chart = Chart(scenario: scenario, events: events)
        self.title = title
        var tints = fixedTints
        for mode in chart.bands.map(\.mode) where tints[mode] == nil {
            tints[mode] = otherTints[(tints.count - fixedTints.count) % otherTints.count]
        }
        self.tints = tints
    }

    /// Returns an SVG document with pictures one below the other.
    package static func document(_ pictures: [SVGChart], title: String = "Timeline") -> String {
        var (body, height) = ("", 0.0)
        for picture in pictures {
            let (drawing, bottom) = picture.draw()
            body += height == 0 ? drawing : "<g transform=\"translate(0 \(px(height)))\">\n\(drawing)</g>\n"
            height += bottom
        }
        return Drawing.document(body, width: width, height: height, title: title)
    }

    /// Draws the picture, and returns its height.
    private func draw() -> (body: String, height: Double) {
        var drawing = Drawing()
        drawBackground(&drawing)
        for (thread, top) in threads { drawBusyWork(of: thread, top, &drawing) }
        drawAxis(&drawing)
        for (thread, top) in threads {
            for (index, lane) in thread.lanes.enumerated() {
                draw(lane, y: top + Double(index) * Self.laneHeight, &drawing)
            }
        }
        let bottom = drawLegend(&drawing)
        return (drawing.body, bottom)
    }

    private static let width = 960.0
    private static let (plotLeft, plotRight) = (170.0, 930.0)
    private static let (modeHeight, laneHeight) = (22.0, 66.0)

    private var modesTop: Double { title == nil ? 16 : 56 }
    private var lanesTop: Double {
        let rows = 1 + (chart.bands.map(\.depth).max() ?? 0)
        return modesTop + Double(rows) * Self.modeHeight + 8
    }

    private static func height(of thread: Chart.ThreadLanes) -> Double {
        Double(max(1, thread.lanes.count)) * laneHeight
    }

    /// The threads, each with the top of its lanes; all but the first have a row for their name above.
    private var threads: [(thread: Chart.ThreadLanes, top: Double)] {
        var top = lanesTop
        return chart.threads.enumerated().map { index, thread in
            if index > 0 { top += Self.modeHeight }
            defer { top += Self.height(of: thread) }
            return (thread, top)
        }
    }

    private var mainBottom: Double { lanesTop + Self.height(of: chart.main) }

    private var lanesBottom: Double {
        chart.others.reduce(mainBottom) { $0 + Self.modeHeight + Self.height(of: $1) }
    }

    private func x(_ t: Int64) -> Double {
        let part = Double(min(max(t, 0), chart.length)) / Double(chart.length)
        return Self.plotLeft + part * (Self.plotRight - Self.plotLeft)
    }

    /// Draws the modes: each nested run starts a row lower than the one around it, and extends behind all lanes.
    private func drawBackground(_ drawing: inout Drawing) {
        if let title { drawing.text(24, 34, title, size: 17, weight: 600) }
        let outermost = Chart.Band(mode: "default", depth: 0, span: .init(start: 0, end: chart.length))
        drawing.text(24, modesTop + 15, chart.others.isEmpty ? "mode" : "main, mode", fill: Ink.quiet)
        for band in [outermost] + chart.bands {
            guard let tint = tints[band.mode] else { continue }
            let (left, right) = (x(band.span.start), max(x(band.span.start) + 1, x(band.span.end)))
            let top = modesTop + Double(band.depth) * Self.modeHeight
            let fill = band.depth == 0 ? "#ffffff" : tint.fill
            drawing.rectangle(left, top, right - left, mainBottom - top, "fill=\"\(fill)\" stroke=\"\(tint.edge)\"")
            guard Drawing.length(band.mode, size: 12) + 12 <= right - left else { continue }
            drawing.text(left + 7, top + 15, band.mode, weight: 600, fill: tint.ink)
        }
        // No modes behind the other threads: their handlers do not depend on them.
        for (thread, top) in threads.dropFirst() {
            let (header, width) = (top - Self.modeHeight, Self.plotRight - Self.plotLeft)
            let height = Self.modeHeight + Self.height(of: thread)
            drawing.rectangle(Self.plotLeft, header, width, height, "fill=\"#ffffff\" stroke=\"\(Ink.line)\"")
            drawing.text(Self.plotLeft + 7, header + 15, thread.name, weight: 600, fill: Ink.quiet)
            drawing.text(24, header + 15, "thread", fill: Ink.quiet)
        }
    }

    private func drawBusyWork(of thread: Chart.ThreadLanes, _ top: Double, _ drawing: inout Drawing) {
        var labelled = -Double.infinity
        for span in thread.busy {
            let (left, right) = (x(span.start), max(x(span.start) + 1, x(span.end)))
            let (width, height) = (right - left, Self.height(of: thread))
            drawing.rectangle(left, top, width, height, Ink.hatched)
            guard width >= 40, left >= labelled else { continue }
            drawing.rectangle(left + 4, top + 4, 34, 16, "rx=\"3\" fill=\"#ffffff\" fill-opacity=\"0.85\"")
            drawing.text(left + 21, top + 16, "busy", size: 11, weight: 600, fill: Ink.label, anchor: "middle")
            labelled = right
        }
    }

    private func drawAxis(_ drawing: inout Drawing) {
        drawing.line(Self.plotLeft, lanesBottom, Self.plotRight, lanesBottom, "stroke=\"\(Ink.label)\"")
        for tick in chart.ticks(atMost: 12) {
            drawing.line(x(tick), lanesTop, x(tick), lanesBottom, "stroke=\"\(Ink.label)\" stroke-opacity=\"0.12\"")
            drawing.line(x(tick), lanesBottom, x(tick), lanesBottom + 5, "stroke=\"\(Ink.label)\"")
            let label = decimalSeconds(tick, decimals: 0) + " s"
            drawing.text(x(tick), lanesBottom + 20, label, fill: Ink.label, anchor: "middle")
        }
    }

    /// Draws a lane. Due points are on its line, fires above it: a fire on time is right above its due point, and the
    /// line of a late fire leans to the right.
    private func draw(_ lane: Chart.Lane, y top: Double, _ drawing: inout Drawing) {
        let (fireY, dueY) = (top + 28, top + 50)
        drawing.text(24, top + 36, Drawing.cut(lane.name, to: 126, size: 14), size: 14, weight: 600)
        if let note = lane.plan?.note {
            drawing.text(24, top + 52, Drawing.cut(note, to: 136, size: 11), size: 11, fill: Ink.quiet)
        }
        let end = lane.marks.first { !$0.isDeinit }.map { x($0.t) } ?? Self.plotRight
        drawing.line(Self.plotLeft, dueY, end, dueY, "stroke=\"\(Ink.line)\" stroke-width=\"1.5\"")
        for span in lane.busy {
            let width = max(1, x(span.end) - x(span.start))
            drawing.rectangle(x(span.start), fireY - 5, width, 10, "fill=\"\(Ink.busy)\" fill-opacity=\"0.8\"")
        }
        // No two points within about three pixels.
        for point in lane.missed.flatMap({ $0.thinned(to: chart.length / 250) }) {
            drawing.circle(x(point), dueY, 4, Ink.missed)
        }
        draw(lane.fires, fireY, dueY, &drawing)
        draw(lane.marks, of: lane, fireY, &drawing)
    }

    private func draw(_ fires: [Chart.Fire], _ fireY: Double, _ dueY: Double, _ drawing: inout Drawing) {
        let positions = fires.map { x($0.t) }
        let nearest = zip(positions, positions.dropFirst()).map { $1 - $0 }.min() ?? .infinity
        let radius = nearest >= 17 ? 8.0 : nearest >= 9 ? 4.5 : 3
        // Late fires are on top of the others; and fires of one look within a pixel of each other are one dot.
        for look in [Chart.Look.onTime, .manual, .late] {
            var shown = -Double.infinity
            var labelEnd = -Double.infinity
            for (fire, position) in zip(fires, positions) where fire.look == look && position - shown >= 1 {
                shown = position
                let stroke = "stroke=\"\(look.style.colour)\" stroke-width=\"1.5\""
                if look != .manual {
                    drawing.line(x(fire.due), dueY, position, fireY, stroke)
                    drawing.circle(x(fire.due), dueY, min(radius, 4), "fill=\"#ffffff\" \(stroke)")
                }
                drawing.fire(position, fireY, radius, look)
                if radius >= 8 {
                    let (number, y) = ("\(fire.count)", fireY + 3.5)
                    drawing.text(position, y, number, size: 10, weight: 700, fill: "#ffffff", anchor: "middle")
                }
                if look == .late { drawDelay(of: fire, fireY - 13, &labelEnd, &drawing) }
            }
        }
    }

    /// Draws the delay of a fire above it, where the label before leaves room.
    private func drawDelay(of fire: Chart.Fire, _ y: Double, _ taken: inout Double, _ drawing: inout Drawing) {
        let delay = fire.t - fire.due
        let label = roundedSeconds(delay, decimals: delay >= 1_000_000 ? 3 : 9, atLeast: 0) + " s late"
        let length = Drawing.length(label, size: 11)
        let start = max(Self.plotLeft, min(x(fire.t) - length / 2, Self.plotRight - length))
        guard start >= taken else { return }
        taken = start + length + 8
        let halo = " stroke=\"#ffffff\" stroke-width=\"3\" paint-order=\"stroke\""
        drawing.text(start, y, label, size: 11, fill: fire.look.style.colour, style: halo)
    }

    private func draw(_ marks: [Chart.Mark], of lane: Chart.Lane, _ y: Double, _ drawing: inout Drawing) {
        var taken = lane.fires.map { x($0.t) }
        for mark in marks {
            var position = x(mark.t)
            // Beside marks of the same time, not on them.
            while taken.contains(where: { abs($0 - position) < 15 }), position < Self.plotRight + 12 { position += 1 }
            taken.append(position)
            drawing.mark(position, y, isDeinit: mark.isDeinit)
        }
    }

    private func drawLegend(_ drawing: inout Drawing) -> Double {
        var (left, y) = (Self.plotLeft, lanesBottom + 48)
        for (label, draw) in legend() {
            let needed = 22 + Drawing.length(label, size: 12)
            if left + needed > Self.plotRight, left > Self.plotLeft { (left, y) = (Self.plotLeft, y + 22) }
            draw(&drawing, left + 8, y)
            drawing.text(left + 22, y + 4, label, fill: Ink.label)
            left += needed + 20
        }
        return y + 22
    }

    /// The legend of the marks in the picture, and of no others.
    private func legend() -> [LegendItem] {
        let lanes = chart.threads.flatMap(\.lanes)
        let looks = Set(lanes.flatMap { $0.fires.map(\.look) })
        let marks = Set(lanes.flatMap { $0.marks.map(\.isDeinit) })
        var items: [LegendItem] = []
        func add(_ label: String, if present: Bool, _ draw: @escaping (inout Drawing, Double, Double) -> Void) {
            if present { items.append((label, draw)) }
        }
        for look in [Chart.Look.onTime, .late, .manual] {
            add(look.style.label, if: looks.contains(look)) { $0.fire($1, $2, 6, look) }
        }
        add("due", if: !looks.isDisjoint(with: [.onTime, .late])) {
            $0.circle($1, $2, 4, "fill=\"#ffffff\" stroke=\"\(Ink.label)\"")
        }
        add("due, missed", if: lanes.contains { !$0.missed.isEmpty }) { $0.circle($1, $2, 4, Ink.missed) }
        add("invalidated or cancelled", if: marks.contains(false)) { $0.mark($1, $2, isDeinit: false) }
        add("target deinitialised", if: marks.contains(true)) { $0.mark($1, $2, isDeinit: true) }
        add("busy", if: chart.threads.contains { !$0.busy.isEmpty }) {
            $0.rectangle($1 - 7, $2 - 6, 14, 12, Ink.hatched)
        }
        var seen: Set<String> = []
        for mode in chart.bands.map(\.mode) where seen.insert(mode).inserted {
            guard let tint = tints[mode] else { continue }
            let style = "fill=\"\(tint.fill)\" stroke=\"\(tint.edge)\""
            add("in \(mode)", if: true) { $0.rectangle($1 - 7, $2 - 6, 14, 12, style) }
        }
        return items
    }
}

private enum Ink {
    static let (text, label, quiet) = ("#1f2328", "#424a53", "#656d76")
    static let (line, busy) = ("#afb8c1", "#8c959f")
    static let hatched = "fill=\"url(#busy)\" stroke=\"\(busy)\""
    static let missed = "fill=\"#ffd7d5\" stroke=\"#cf222e\" stroke-opacity=\"0.7\""
}

private typealias LegendItem = (label: String, draw: (inout Drawing, Double, Double) -> Void)
private typealias Tint = (fill: String, edge: String, ink: String)

private let fixedTints: [String: Tint] = [
    "default": ("#f6f8fa", "#d0d7de", "#656d76"), "tracking": ("#fff1c9", "#e3b341", "#7d4e00"),
]
private let otherTints: [Tint] = [
    ("#e7defc", "#b197e8", "#5a32a3"), ("#d6f2df", "#74c690", "#116329"),
    ("#d3eef5", "#6cb8cf", "#0a5a73"), ("#fde0ec", "#e39abb", "#99286e"),
]

extension Chart.Look {
    fileprivate var style: (colour: String, label: String) {
        switch self {
        case .onTime: ("#0969da", "fires on time")
        case .late: ("#cf222e", "fires late")
        case .manual: ("#8250df", "fired by hand")
        }
    }
}

/// The elements of the document, drawn in the order of the calls.
private struct Drawing {
    private(set) var body = ""

    mutating func rectangle(_ x: Double, _ y: Double, _ width: Double, _ height: Double, _ style: String) {
        body += "<rect x=\"\(px(x))\" y=\"\(px(y))\" width=\"\(px(width))\" height=\"\(px(height))\" \(style)/>\n"
    }

    mutating func line(_ x1: Double, _ y1: Double, _ x2: Double, _ y2: Double, _ style: String) {
        body += "<line x1=\"\(px(x1))\" y1=\"\(px(y1))\" x2=\"\(px(x2))\" y2=\"\(px(y2))\" \(style)/>\n"
    }

    mutating func circle(_ x: Double, _ y: Double, _ radius: Double, _ style: String) {
        body += "<circle cx=\"\(px(x))\" cy=\"\(px(y))\" r=\"\(px(radius))\" \(style)/>\n"
    }

    mutating func fire(_ x: Double, _ y: Double, _ radius: Double, _ look: Chart.Look) {
        let style = "fill=\"\(look.style.colour)\" stroke=\"#ffffff\""
        guard look == .manual else { return circle(x, y, radius, style) }
        let r = px(radius + 1.5)
        body += "<path d=\"M\(px(x)) \(px(y))m0 -\(r)l\(r) \(r)l-\(r) \(r)l-\(r) -\(r)z\" \(style)/>\n"
    }

    mutating func mark(_ x: Double, _ y: Double, isDeinit: Bool) {
        let stroke = "stroke=\"\(Ink.text)\" stroke-width=\"2.2\""
        guard !isDeinit else { return rectangle(x - 4.5, y - 4.5, 9, 9, "fill=\"#ffffff\" \(stroke)") }
        line(x - 5, y - 5, x + 5, y + 5, stroke)
        line(x - 5, y + 5, x + 5, y - 5, stroke)
    }

    mutating func text(
        _ x: Double, _ y: Double, _ text: String, size: Int = 12, weight: Int = 400, fill: String = Ink.text,
        anchor: String = "start", style: String = ""
    ) {
        let font = "font-size=\"\(size)\" font-weight=\"\(weight)\" fill=\"\(fill)\" text-anchor=\"\(anchor)\""
        body += "<text x=\"\(px(x))\" y=\"\(px(y))\" \(font)\(style)>\(xmlEscaped(text))</text>\n"
    }

    static func document(_ body: String, width: Double, height: Double, title: String) -> String {
        """
        <svg xmlns="http://www.w3.org/2000/svg" width="\(px(width))" height="\(px(height))" \
        viewBox="0 0 \(px(width)) \(px(height))" role="img" \
        font-family="-apple-system, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif">
        <title>\(xmlEscaped(title))</title>
        <defs><pattern id="busy" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">\
        <rect width="8" height="8" fill="#afb8c1" fill-opacity="0.25"/>\
        <rect width="3" height="8" fill="#8c959f" fill-opacity="0.45"/></pattern></defs>
        <rect width="100%" height="100%" fill="#ffffff"/>
        \(body)</svg>

        """
    }

    /// Returns the approximate length of a text; the fonts of the reader are not known here.
    static func length(_ text: String, size: Double) -> Double { Double(text.count) * size * 0.58 }

    static func cut(_ text: String, to length: Double, size: Double) -> String {
        let fitting = Int(length / (size * 0.58))
        return text.count > fitting ? text.prefix(fitting - 1) + "…" : text
    }
}

/// Returns a coordinate with at most two decimals, the same on every machine.
private func px(_ value: Double) -> String { decimalSeconds(Int64((value * 100).rounded()) * 10_000_000, decimals: 0) }
