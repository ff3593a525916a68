import FoundationEssentials
import Testing

@testable import Scenarios
@testable import experiments

@Suite("The page of experiments")
struct ExperimentsPageTests {
    private func page(_ comparisons: [Comparison]) -> String {
        ExperimentsPage(comparisons: comparisons, clock: .virtual).html
    }

    /// The drawings that the page has in itself.
    private func drawings(in html: String) throws -> [String] {
        try html.components(separatedBy: "base64,").dropFirst().map { part in
            let data = try #require(Data(base64Encoded: String(part.prefix { $0 != "\"" })))
            return String(decoding: data, as: UTF8.self)
        }
    }

    @Test("it has a timeline and every row of each experiment, and needs no other file")
    func complete() throws {
        let comparisons = Experiment.all.map { Comparison($0, on: .virtual) }
        let html = page(comparisons)
        let drawings = try drawings(in: html)
        #expect(drawings.count == 16)
        for (comparison, drawing) in zip(comparisons, drawings) {
            // Something is drawn in a lane: a call, or the end of an item.
            #expect(
                drawing.contains("<circle") || drawing.contains("stroke-width=\"2.2\""), "\(comparison.experiment.id)")
            for text in comparison.rows.flatMap(\.columns) { #expect(html.contains("<td>\(xmlEscaped(text))</td>")) }
        }
        let rows = comparisons.reduce(0) { $0 + $1.rows.count }
        #expect(html.components(separatedBy: "<tr><td>").count - 1 == rows)
        #expect(html.components(separatedBy: "src=").count == html.components(separatedBy: "src=\"data:").count)
        #expect(html.components(separatedBy: "href=").count == html.components(separatedBy: "href=\"#").count)
    }

    @Test("a program's picture has its calls, its end and its target's")
    func programs() throws {
        let programs = ["X7", "X16"].compactMap(Experiment.named).map { Comparison($0, on: .virtual) }
        let drawings = try drawings(in: page(programs))
        try #require(drawings.count == 2)
        #expect(drawings[0].contains(">4</text>") && !drawings[0].contains(">5</text>"))
        for drawing in drawings {
            #expect(drawing.contains("invalidated or cancelled") && drawing.contains("target deinitialised"))
        }
    }

    @Test("a row that differs from the document is marked, and names both events")
    func different() throws {
        let experiment = try #require(Experiment.named("X1"))
        let wrong = Experiment(
            id: "X1", title: "<one> & other",
            expected: experiment.expected.map { .init(t: $0.t, event: $0.event + "!", document: $0.document) },
            play: experiment.play)
        let html = page([Comparison(wrong, on: .virtual)])
        #expect(html.contains("0 of 1 experiments equal"))
        #expect(html.contains("&lt;one&gt; &amp; other"))
        #expect(html.components(separatedBy: "<tr class=\"different\">").count - 1 == experiment.expected.count)
        #expect(html.contains("T fires (1)   &lt;-- expected: T fires (1)!"))
    }
}
