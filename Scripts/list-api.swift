// Lists the public interface that symbol graphs describe, one file per directory of graphs, and in the folder Ports the
// ports of each. Each symbol has a line with its owning type and its declaration, in sorted order. Declarations that the
// compiler derives are not listed.
//
//     swift Scripts/list-api.swift .build/symbol-graphs API

import FoundationEssentials

struct Graph: Decodable {
    struct Symbol: Decodable {
        struct Kind: Decodable { var identifier: String }
        struct Identifier: Decodable { var precise: String }
        struct Fragment: Decodable { var spelling: String }

        var kind: Kind
        var identifier: Identifier
        var pathComponents: [String]
        var declarationFragments: [Fragment]
        var spi: Bool?

        var path: String { pathComponents.joined(separator: ".") }
        var declaration: String {
            let text = declarationFragments.map(\.spelling).joined()
            // The compiler's output varies with the file that it reads first.
            return text.replacing("RunLoop.Instant.Duration", with: "Duration")
                .split(whereSeparator: \.isWhitespace).joined(separator: " ")
        }
        var isDerived: Bool { identifier.precise.contains("::SYNTHESIZED::") }
        var isExtension: Bool { kind.identifier == "swift.extension" }
        var isPort: Bool { spi ?? false }
    }

    struct Relationship: Decodable {
        var kind: String
        var source: String
        var target: String
        var targetFallback: String?
    }

    var symbols: [Symbol]
    var relationships: [Relationship]
}

/// What every type conforms to that does not say otherwise.
let implied = ["Swift.Copyable", "Swift.Escapable", "Swift.SendableMetatype"]

/// The lines of the ports, or of what is public. `portNames` are those of all products.
func lines(of graphs: [Graph], ports: Bool, _ portNames: Set<String>) -> [String] {
    let symbols = graphs.flatMap(\.symbols)
    let names = Dictionary(symbols.map { ($0.identifier.precise, $0.path) }, uniquingKeysWith: { name, _ in name })
    var supertypes: [String: Set<String>] = [:]
    for relation in graphs.flatMap(\.relationships) where ["conformsTo", "inheritsFrom"].contains(relation.kind) {
        let name = names[relation.target] ?? relation.targetFallback ?? relation.target
        guard !implied.contains(name), ports || !portNames.contains(relation.target) else { continue }
        supertypes[relation.source, default: []].insert(String(name.trimmingPrefix("Swift.")))
    }
    return symbols.filter { !$0.isDerived && !$0.isExtension && $0.isPort == ports }
        .map { symbol in
            let owner = symbol.pathComponents.dropLast().joined(separator: ".")
            let supertypes = supertypes[symbol.identifier.precise, default: []].sorted().joined(separator: ", ")
            let line = [owner, symbol.declaration, supertypes].filter { !$0.isEmpty }.joined(separator: ": ")
            return (path: symbol.path, line: line)
        }
        .sorted { ($0.path, $0.line) < ($1.path, $1.line) }
        .map(\.line)
}

let files = FileManager.default
let (input, output) = (CommandLine.arguments[1], CommandLine.arguments[2])
try? files.removeItem(atPath: output)
try files.createDirectory(atPath: "\(output)/Ports", withIntermediateDirectories: true)
var graphs: [String: [Graph]] = [:]
for product in try files.contentsOfDirectory(atPath: input) {
    let directory = "\(input)/\(product)"
    graphs[product] = try files.contentsOfDirectory(atPath: directory).map { name in
        try JSONDecoder().decode(Graph.self, from: Data(contentsOf: URL(filePath: "\(directory)/\(name)")))
    }
}
let portNames = Set(graphs.values.joined().flatMap(\.symbols).filter(\.isPort).map(\.identifier.precise))
for (product, graphs) in graphs {
    for (folder, ports) in [(output, false), ("\(output)/Ports", true)] {
        let lines = lines(of: graphs, ports: ports, portNames)
        if ports && lines.isEmpty { continue }
        try Data(lines.map { $0 + "\n" }.joined().utf8).write(to: URL(filePath: "\(folder)/\(product).txt"))
    }
}
