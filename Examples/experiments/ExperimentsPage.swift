import FoundationEssentials
import Scenarios

/// Experiments as one page: the timeline of each beside the rows of its document. The page needs no other file.
struct ExperimentsPage {
    let comparisons: [Comparison]
    let clock: ClockName

    var summary: String {
        let equal = comparisons.count { $0.isEqual }
        return "\(equal) of \(comparisons.count) experiments equal to the documents (\(clock.rawValue) clock)"
    }

    var html: String {
        let links = comparisons.map { "<a href=\"#\($0.experiment.id)\">\($0.experiment.id)</a>" }
        return """
            <!DOCTYPE html>
            <html xmlns="http://www.w3.org/1999/xhtml" lang="en">
            <head><meta charset="utf-8"/><meta name="viewport" content="width=device-width, initial-scale=1"/>
            <title>Experiments</title>
            <style>
            body { font-family: sans-serif; margin: 2em; color: #1f2328 }
            section { display: flex; flex-wrap: wrap; gap: 0 2em; align-items: start; margin-bottom: 1em }
            h2 { flex: 0 0 100% } img { flex: 3 1 30em; min-width: 0; max-width: 60em } div { flex: 2 1 24em; overflow: auto }
            table { border-collapse: collapse } td, th { padding: 0.2em 0.8em; text-align: left; vertical-align: top }
            tr:nth-child(even) { background: #f6f8fa } tr.different { background: #ffd7d5 }
            </style></head>
            <body>
            <h1>\(summary)</h1>
            <p>Each timeline is what happened; the rows beside it are the document's, with the times and events here.
            Empty circles are dates that were due, filled ones calls. \(links.joined(separator: " "))</p>
            \(comparisons.map(section).joined())</body>
            </html>

            """
    }

    private func section(_ comparison: Comparison) -> String {
        let experiment = comparison.experiment
        let drawing = Data(SVGChart.document([comparison.picture], title: experiment.id).utf8).base64EncodedString()
        return """
            <section id="\(experiment.id)">
            <h2>\(experiment.id): \(xmlEscaped(experiment.title))</h2>
            <img alt="Timeline of \(experiment.id)" src="data:image/svg+xml;base64,\(drawing)"/>
            <div><table>
            <tr>\(cells("th", Comparison.Row.heads))</tr>
            \(comparison.rows.map(row).joined())</table>
            <p>\(comparison.isEqual ? "Equal to the document." : "Different from the document.")</p></div>
            </section>

            """
    }

    private func row(_ row: Comparison.Row) -> String {
        "<tr\(row.isEqual ? "" : " class=\"different\"")>\(cells("td", row.columns))</tr>\n"
    }

    private func cells(_ element: String, _ texts: [String]) -> String {
        texts.map { "<\(element)>\(xmlEscaped($0))</\(element)>" }.joined()
    }
}
