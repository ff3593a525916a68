// Lists the symbols and articles of a built reference that stand in no group of a page: those of a product outside the
// Topics of its landing page, and members of a type whose page has groups, or more than twelve members and no groups. Fails
// if there is one.
//
//     swift Scripts/outside-topics.swift .build/docs

import Foundation

struct Page: Decodable {
    struct Identifier: Decodable { var url: String }
    struct Metadata: Decodable { var symbolKind: String? }
    struct Reference: Decodable { var deprecated: Bool? }
    struct Section: Decodable {
        var title: String?
        var generated: Bool?
        var identifiers: [String]
    }

    var identifier: Identifier
    var metadata: Metadata
    var topicSections: [Section]?
    var references: [String: Reference]?

    /// The path below the site's `documentation`.
    var path: String { identifier.url.components(separatedBy: "/documentation/").last! }

    /// The groups that DocC made, by the kinds of symbols, of all that no page puts into a group.
    var generated: [Section] { (topicSections ?? []).filter { $0.generated == true } }

    var outside: [String] {
        let hasGroups = generated.count < (topicSections ?? []).count
        let isProduct = metadata.symbolKind == "module"
        // DocC keeps this one beside a page's groups: members that the standard library's protocols ask for.
        let ungrouped = generated.filter { $0.title != "Default Implementations" }
        // The cases of an enumeration are one group by nature.
        let members = current(ungrouped.filter { $0.title != "Enumeration Cases" })
        guard isProduct || hasGroups || members.count > 12 else { return [] }
        return current(ungrouped).map { $0.components(separatedBy: "/documentation/").last! }
    }

    /// The symbols of sections, without former names, which belong to no group: the compiler leads from them to the new
    /// ones.
    private func current(_ sections: [Section]) -> [String] {
        sections.flatMap(\.identifiers).filter { references?[$0]?.deprecated != true }
    }

    /// The file whose Topics have the groups of this page.
    var source: String {
        let parts = path.split(separator: "/")
        let catalog = "Sources/\(parts[0])/\(parts[0]).docc"
        // `Remote-swift.struct` tells a type from the property `remote`.
        let type = parts.dropFirst().map { $0.split(separator: "-swift.")[0] }.joined(separator: ".")
        return type.isEmpty ? "\(catalog)/\(parts[0]).md" : "\(catalog)/Extensions/\(type).md"
    }
}

let site = CommandLine.arguments[1] + "/data/documentation/"
let pages = try FileManager.default.subpathsOfDirectory(atPath: site).filter { $0.hasSuffix(".json") }.map { file in
    try JSONDecoder().decode(Page.self, from: Data(contentsOf: URL(filePath: site + file)))
}
guard pages.contains(where: { $0.metadata.symbolKind == "module" }) else { fatalError("\(site) has no product") }
let lines = pages.flatMap { page in page.outside.map { "\($0): error: in no group of \(page.source)" } }.sorted()
for line in lines { print(line) }
exit(lines.isEmpty ? 0 : 1)
