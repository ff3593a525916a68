import Foundation
import FoundationXML

/// The elements of a document by their class, or by their name if they have none.
final class Document: NSObject, XMLParserDelegate {
    private(set) var counts: [String: Int] = [:]
    private(set) var references: [String] = []
    private(set) var text = ""
    private(set) var error: String?

    init(_ text: String) {
        super.init()
        let parser = XMLParser(data: Data(text.utf8))
        parser.delegate = self
        if !parser.parse() { error = "line \(parser.lineNumber): \(String(describing: parser.parserError))" }
    }

    func parser(
        _ parser: XMLParser, didStartElement element: String, namespaceURI: String?, qualifiedName: String?,
        attributes: [String: String]
    ) {
        counts[attributes["class"] ?? element, default: 0] += 1
        references += ["href", "src"].compactMap { attributes[$0] }
    }

    func parser(_ parser: XMLParser, foundCharacters string: String) { text += string }
}
