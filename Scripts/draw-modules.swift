// Draws the modules of a manifest as a tree: a module stands below the one that it is built on, with its other
// needs in brackets. Needs that follow from others are not repeated.
//
//     swift package dump-package | swift Scripts/draw-modules.swift

import Foundation

struct Manifest: Decodable {
    struct Target: Decodable {
        var name: String
        var path: String?
        var dependencies: [[String: Dependency]]

        /// The names of modules, and of packages.
        var needs: [String] {
            dependencies.flatMap { $0.map { kind, names in kind == "product" ? names.package : names.name } }
        }
        /// Tests have a path, or end in this word; a system library's path is its name.
        var isModule: Bool { !name.hasSuffix("Tests") && (path == nil || path == name) }
    }

    /// An array that begins with a name, and a package's for a product.
    struct Dependency: Decodable {
        var name: String
        var package = ""

        init(from decoder: any Decoder) throws {
            var values = try decoder.unkeyedContainer()
            name = try values.decode(String.self)
            package = (try? values.decode(String.self)) ?? ""
        }
    }

    var targets: [Target]
}

let manifest = try JSONDecoder().decode(Manifest.self, from: FileHandle.standardInput.readDataToEndOfFile())
let modules = manifest.targets.filter(\.isModule)
let names = modules.map(\.name)
let needs = Dictionary(uniqueKeysWithValues: modules.map { ($0.name, $0.needs) })

func everything(below name: String) -> Set<String> {
    (needs[name] ?? []).reduce(into: []) { $0.formUnion(everything(below: $1).union([$1])) }
}
func depth(of name: String) -> Int { (needs[name] ?? []).map { depth(of: $0) + 1 }.max() ?? 0 }

/// The needs that no other one has, the deepest first. A package appears once, whichever of its products are used.
func direct(_ name: String) -> [String] {
    let all = (needs[name] ?? []).reduce(into: [String]()) { if !$0.contains($1) { $0.append($1) } }
    let implied = all.reduce(into: Set<String>()) { $0.formUnion(everything(below: $1)) }
    return all.filter { !implied.contains($0) }.sorted { depth(of: $0) > depth(of: $1) }
}

func draw(_ name: String, first: String, others: String) {
    let besides = direct(name).dropFirst()
    print(first + name + (besides.isEmpty ? "" : " (\(besides.joined(separator: ", ")))"))
    let children = names.filter { direct($0).first == name }
    for child in children {
        let isLast = child == children.last
        draw(child, first: others + (isLast ? "└─ " : "├─ "), others: others + (isLast ? "   " : "│  "))
    }
}

for root in names where direct(root).isEmpty && names.contains(where: { direct($0).first == root }) {
    draw(root, first: "", others: "")
}
