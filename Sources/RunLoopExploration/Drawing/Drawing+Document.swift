extension Drawing {
    /// The picture as an SVG document, with the likelihoods of a cause under it.
    func document(_ cause: Exploration.Cause?) -> String {
        let sentence = cause.map(\.description) ?? ""
        let (curve, curveHeight) = cause.map { Self.curve($0, below: size.height + 20) } ?? ("", 0)
        let width = max(size.width, Self.width(ofLetters: sentence.count) + 32)
        let height = size.height + (cause == nil ? 0 : 20 + curveHeight)
        return """
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(width) \(height)" width="\(width)" height="\(height)">
            <style>
            \(Self.style)
            </style>
            <rect class="paper" width="\(width)" height="\(height)"/>
            \(elements())
            <text class="words" x="16" y="\(size.height + 12)">\(sentence.markup)</text>
            \(curve)
            </svg>

            """
    }

    /// The likelihoods of a cause as bars.
    static func curve(_ cause: Exploration.Cause, below top: Int) -> (elements: String, height: Int) {
        let bars = cause.likelihoods.enumerated().map { index, likelihood in
            let y = top + 14 + 18 * index
            let kind = likelihood.steps == cause.step?.number ? "bar jump" : "bar"
            let width = Int((likelihood.rate * 240).rounded())
            return """
                <text class="words" x="16" y="\(y)">after \(likelihood.steps) steps</text>\
                <text class="words" x="150" y="\(y)">\(likelihood.words)</text>\
                <rect class="\(kind)" x="230" y="\(y - 10)" width="\(width)" height="12"/>
                """
        }
        return (bars.joined(separator: "\n"), 18 * cause.likelihoods.count + 16)
    }

    static let style = """
        svg { font: 12px ui-monospace, monospace; }
        .paper { fill: #fff; }
        text { fill: #222; }
        .title, .machine { font-weight: bold; }
        .time { fill: #777; }
        .life, .group { stroke: #aaa; fill: none; }
        .message { stroke: #2563a8; fill: none; }
        .arrow { fill: #2563a8; }
        .end { stroke: #c0262d; stroke-width: 2; fill: none; }
        .row circle { fill: #444; }
        .row rect { fill: #2563a8; fill-opacity: 0; }
        .departure circle { fill: #d97706; }
        .departure .words { font-weight: bold; }
        .alone rect { fill-opacity: 0.08; }
        .departure rect { fill: #d97706; fill-opacity: 0.12; }
        .cause rect { fill: #c0262d; fill-opacity: 0.16; }
        .bar { fill: #9db7d5; }
        .jump { fill: #c0262d; }
        """
}
