extension Drawing {
    /// The picture as an SVG document, with the likelihoods of a cause under it.
    func document(_ cause: Exploration.Cause?) -> String {
        let curve = cause.map { Self.curve($0, below: size.height) }
        let height = size.height + (curve?.height ?? 0)
        return """
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(size.width) \(height)" width="\(size.width)" height="\(height)">
            <style>\(Self.style)</style>
            <rect class="paper" width="\(size.width)" height="\(height)"/>
            \(elements())
            \(curve?.elements ?? "")
            </svg>

            """
    }

    /// The likelihoods of a cause as bars.
    ///
    /// - Parameter top: the upper end.
    static func curve(_ cause: Exploration.Cause, below top: Int) -> (elements: String, height: Int) {
        let bars = cause.likelihoods.enumerated().map { index, likelihood in
            let y = top + 28 + 18 * index
            let kind = likelihood.steps == cause.step?.number ? "bar jump" : "bar"
            let width = Int((likelihood.rate * 240).rounded())
            return """
                <text class="words" x="16" y="\(y)">after \(likelihood.steps) steps</text>\
                <text class="words" x="150" y="\(y)">\(likelihood.words)</text>\
                <rect class="\(kind)" x="230" y="\(y - 10)" width="\(width)" height="12"/>
                """
        }
        let sentence = "<text class=\"words\" x=\"16\" y=\"\(top + 8)\">\(cause.description.markup)</text>"
        return (([sentence] + bars).joined(separator: "\n"), 28 + 18 * cause.likelihoods.count + 12)
    }

    static let style = """
        svg { font: 12px ui-monospace, monospace; }
        .paper { fill: #fff; }
        text { fill: #222; }
        .title, .machine { font-weight: bold; }
        .time { fill: #777; }
        .life, .group { stroke: #aaa; fill: none; }
        .message { stroke: #2563a8; fill: none; }
        .head { fill: #2563a8; }
        .end { stroke: #c0262d; stroke-width: 2; fill: none; }
        .row circle { fill: #444; }
        .row rect { fill: transparent; }
        .departure circle { fill: #d97706; }
        .departure .words { font-weight: bold; }
        .alone rect { fill: #eef3fa; }
        .departure rect { fill: #fdf3e0; }
        .cause rect { fill: #fbdcdc; }
        .bar { fill: #9db7d5; }
        .jump { fill: #c0262d; }
        """
}
