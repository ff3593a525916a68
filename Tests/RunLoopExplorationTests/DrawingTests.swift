import Foundation
import FoundationXML
import RunLoopCore
import RunLoopHosts
import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

@testable import RunLoopExploration
@_spi(Ports) @testable import RunLoopSimulation

/// A program in which a client asks a store for a value, twice. The store may crash.
private func askTwice(_ simulation: Simulation) throws {
    let network = SimulatedNetwork(simulation)
    let store = network.addHost("a store with a long name", addresses: ["10.1.0.1"]) { loop in
        _ = try Listener(address: Endpoint("0.0.0.0", port: 7), on: loop) { _, descriptor, _ in
            let connection = Connection(adopting: descriptor, on: loop) { connection, bytes in
                connection.write("<value> & \"more\"\r\n")
                return bytes.count
            }
            try? connection.start()
        }
    }
    let answers = Counter()
    network.addHost("client") { loop in
        Connection.connect(host: "a store with a long name", port: 7, on: loop) { _, bytes in
            answers.add()
            return bytes.count
        } completion: { result in
            guard let connection = try? result.get() else { return }
            try? connection.start()
            for number in 0..<2 {
                loop.perform(afterDelay: .seconds(1 + number)) { connection.write("GET key \(number)") }
            }
        }
    }
    simulation.mayHappen("the store crashes") { store.crash() }
    simulation.advance(by: .seconds(5))
    if answers.value == 1 { throw Broken(description: "missing: </script> ]]> & \u{1}'") }
}

private func finding(_ program: (Simulation) throws -> Void) throws -> Exploration.Finding {
    var exploration = Exploration(schedules: 5000, limits: Exploration.Limits(reportsDeadlocks: false))
    exploration.longestCauseSearch = .seconds(600)
    guard case .failed(let finding) = exploration.run(program) else {
        throw Broken(description: "nothing was found")
    }
    return finding
}

/// The texts of a document by the class of their element, if it is well-formed.
private final class Document: NSObject, XMLParserDelegate {
    private(set) var texts: [(kind: String, text: String)] = []
    private(set) var kinds: [String: Int] = [:]
    private(set) var references: [String] = []
    private var open: [String] = []
    private(set) var error: String?

    init(_ text: String) {
        super.init()
        let parser = XMLParser(data: Data(text.utf8))
        parser.delegate = self
        if !parser.parse() { error = "line \(parser.lineNumber): \(String(describing: parser.parserError))" }
    }

    func parser(
        _: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?,
        attributes: [String: String]
    ) {
        for kind in (attributes["class"] ?? name).split(separator: " ") { kinds[String(kind), default: 0] += 1 }
        references += ["href", "src", "xlink:href"].compactMap { attributes[$0] }
        open.append(attributes["class"] ?? name)
        texts.append((open.last!, ""))
    }

    func parser(_: XMLParser, didEndElement: String, namespaceURI: String?, qualifiedName: String?) {
        open.removeLast()
    }

    func parser(_: XMLParser, foundCharacters text: String) {
        guard texts.last?.kind == open.last else { return }
        texts[texts.count - 1].text += text
    }

    func texts(of kind: String) -> [String] { texts.filter { $0.kind == kind }.map(\.text) }
}

@Suite("Pictures of findings")
struct DrawingTests {
    @Test("the text has whole names, the text of messages, the crash, its step, and the likelihoods")
    func text() throws {
        let finding = try finding(askTwice)
        let step = try #require(finding.cause?.step)
        let lines = finding.picture.split(separator: "\n")
        let heads = lines.dropFirst().prefix(3).map {
            $0.split(separator: " ").filter { $0 != "│" }.joined(separator: " ")
        }
        #expect(heads == ["time test", "a store with a long name", "client"], "\(finding)")
        #expect(lines.contains { $0.hasSuffix("│◀───┤    9 bytes \"GET key 1\"") }, "\(finding)")
        #expect(lines.contains { $0.hasSuffix(#"18 bytes "<value> & \"more\"\r\n""#) }, "\(finding)")
        #expect(lines.contains { $0.contains("the store crashes") && $0.hasSuffix(" ← ⇐ step \(step.number)") })
        #expect(lines.contains { $0.contains("✕") && $0.hasSuffix("crashed") })
        #expect(lines.contains { $0.contains("DrawingTests.swift:") })
        #expect("\(finding)".contains("  after \(step.number) steps  32 of 32  ████████████████████████████████\n"))
    }

    @Test("a long run has the rows around the departure and the last ones, and says how many are left out")
    func centred() throws {
        let finding = try finding { simulation in
            for hour in 0..<500 {
                simulation.advance(by: .seconds(1))
                simulation.note("hour \(hour)")
                if simulation.mayHappen("it rains"), hour == 250 { throw Broken(description: "it is wet") }
                if hour == 251 { break }
            }
            for hour in 0..<500 { simulation.note("later \(hour)") }
        }
        // The run ends with the fault.
        let lines = finding.picture.split(separator: "\n").map(String.init)
        #expect(lines.count < 30 && lines[1].contains("⋮  after "), "\(finding)")
        #expect(lines.contains { $0.hasSuffix("it rains: true ← ⇐ step 251") }, "\(finding)")
        #expect(finding.nearest?.contains("⋮  ") == true)
    }

    @Test("rows between two parts of a long run are counted")
    func gaps() {
        var entries: [Trace.Entry] = []
        for number in 1...200 {
            let date = RunLoop.Instant(nanoseconds: Int64(number))
            if number == 100 {
                entries.append(
                    .choice(
                        Trace.Choice(
                            date: date, kind: .possibility, place: "p", step: 0, names: ["a", "b"], range: 0...1,
                            usual: 0, chosen: 1)))
            }
            entries.append(.event(TracedEvent(date: date, lane: "main", kind: .note, words: "note \(number)")))
        }
        let rows = Trace.rows(of: entries)
        let shown = rows.centred(on: nil)
        #expect(shown == Array(96...102) + Array(191...199))
        let lines = Picture(rows, around: nil).lines
        #expect(lines[0].hasSuffix("⋮  after 96 earlier events"))
        #expect(lines.contains { $0.hasSuffix("note 100 ←") })
        #expect(lines.contains { $0.hasSuffix("⋮  88 events") })
        #expect(lines.count == 3 + shown.count)
    }

    @Test("the page is well-formed, needs no other file, and has all rows of both runs beside each other")
    func page() throws {
        let finding = try finding(askTwice)
        let page = Document(finding.html)
        #expect(page.error == nil)
        #expect(page.references.isEmpty && !finding.html.contains("url("))
        #expect(page.texts(of: "title").first == "missing: </script> ]]> & ␁'")
        let (left, right) = (
            Trace.rows(of: finding.run.trace.entries).rows,
            Trace.rows(of: try #require(finding.passingRun).trace.entries).rows
        )
        let same = Alignment.pairs(of: left, right).filter { $0.allSatisfy { $0 != nil } }.count
        #expect(same > 5 && same < left.count)
        #expect(page.kinds["row"] == left.count + right.count - same)
        #expect(page.kinds["alone"] == left.count + right.count - 2 * same)
        #expect(page.kinds["departure"] == 1 && page.kinds["cause"] == 1)
        #expect(page.kinds["message"] == page.kinds["arrow"] && page.kinds["message"]! > 4)
        let columns = ["a store with a long name", "client", "test"]
        #expect(page.texts(of: "machine").sorted() == (columns + columns).sorted())
        #expect(page.kinds["bar"] == finding.cause?.likelihoods.count)
        let words = page.texts(of: "words")
        for row in left + right { #expect(words.contains { $0.contains(row.event.words.prefix(90)) }) }
    }

    @Test("the page has the first line of a fault as its title, and the others as they are")
    func lines() throws {
        let page = Document(
            try finding { simulation in
                if simulation.mayHappen("a") { throw Broken(description: "one\n  two <\nthree") }
            }.html)
        #expect(page.error == nil)
        #expect(page.texts(of: "title").first == "one")
        #expect(page.texts(of: "pre").first == "  two <\nthree")
    }

    @Test("the SVG document is well-formed, and has the departure and the likelihoods")
    func svg() throws {
        let finding = try finding(askTwice)
        let document = Document(finding.svg)
        #expect(document.error == nil && document.references.isEmpty)
        #expect(document.kinds["departure"] == 1 && document.kinds["cause"] == 1)
        #expect(document.kinds["bar"] == finding.cause?.likelihoods.count && document.kinds["jump"] == 1)
        #expect(document.texts(of: "words").contains("\(try #require(finding.cause))"))
    }

    @Test("any text is escaped", arguments: ["<&>\"'", "]]></script><!--", "\u{0}\u{1B}\u{7F}\u{85}\u{FFFF}", "é🙂"])
    func escaping(text: String) {
        let document = Document("<text class=\"t\" title=\"\(text.markup)\">\(text.markup)</text>")
        #expect(document.error == nil)
        let shown = text.map { character in
            ["\u{0}": "␀", "\u{1B}": "␛", "\u{7F}": "␡", "\u{85}": "\u{FFFD}", "\u{FFFF}": "\u{FFFD}"][character]
                ?? character
        }
        #expect(document.texts(of: "t") == [String(shown)])
    }

    @Test("equal rows are beside each other, and the others alone", arguments: [5, 3000])
    func alignment(different: Int) {
        func rows(_ words: [String]) -> [Rows.Row] {
            Rows(
                words.enumerated().map { index, words in
                    .event(
                        TracedEvent(
                            date: RunLoop.Instant(nanoseconds: Int64(index)), lane: "a", kind: .note, words: words))
                }
            ).rows
        }
        let left = rows(["x", "y"] + (0..<different).map { "left \($0)" } + ["z"])
        let right = rows(["x", "y ← instead of b"] + (0..<different).map { "right \($0)" } + ["z"])
        let pairs = Alignment.pairs(of: left, right)
        #expect(pairs.prefix(2) == [[0, 0], [1, 1]])
        #expect(pairs.compactMap { $0[0] } == Array(left.indices) && pairs.compactMap { $0[1] } == Array(right.indices))
        // Runs with so many rows are not compared, but ordered by time.
        #expect((pairs.last == [left.count - 1, right.count - 1]) == (different == 5))
    }

    @Test("a message is shown if it is text, up to 48 bytes")
    func messages() {
        #expect(messageText(of: Array("a\tb\r\n\"".utf8)) == #""a\tb\r\n\"""#)
        #expect(messageText(of: []) == nil)
        #expect(messageText(of: [0x61, 0xFF]) == nil && messageText(of: [0x61, 0]) == nil)
        let long = String(repeating: "é", count: 30)
        #expect(messageText(of: Array(long.utf8)) == "\"\(long.prefix(24))\"…")
        #expect(messageText(of: Array(("a" + long).utf8)) == "\"a\(long.prefix(23))\"…")
        #expect(messageText(of: Array(repeating: 0xFF, count: 60)) == nil)
    }

    @Test("the bytes of a message are only asked for when the run is recorded")
    func bytes() {
        func count(_ listener: (@Sendable (TracedEvent) -> Void)?) -> Int {
            var asked = 0
            func bytes() -> [UInt8] {
                asked += 1
                return [1]
            }
            let schedule = Schedule(Recorder(ReplayStrategy([]), nil))
            withSimulation(seed: 0, traced: true, schedule: schedule, listener: listener) { simulation in
                simulation.note(.bytes(1), from: "a", to: "b", bytes: bytes())
            }
            return asked
        }
        #expect(count(nil) == 0)
        #expect(count { _ in } == 1)
    }

    @Test("the trace in words has each event and choice")
    func trace() throws {
        let finding = try finding(askTwice)
        let lines = finding.trace.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count == finding.run.trace.entries.count)
        #expect(lines.contains { $0.hasSuffix("a store with a long name: 9 bytes \"GET key 0\" from client") })
        #expect(lines.contains { $0.contains("the store crashes") && $0.hasSuffix(": happens") })
    }
}
