import Commands
import Foundation

/// The work of a dependent's first build, in counts that do not depend on the machine's load.
struct Build: Codable {
    /// The lines of Swift of the product and of the targets below it, without comments and blank lines.
    var lines: Int
    /// The bytes of a stripped program with a timer.
    var bytes: Int

    static let limits: [(name: String, value: KeyPath<Build, Int> & Sendable)] = [
        ("lines that are compiled", \.lines), ("bytes of a program", \.bytes),
    ]

    /// The permitted growth.
    private static let share = 0.03

    /// - Returns: `true` if nothing has grown by more than is permitted.
    func compare(with recorded: Build?) -> Bool {
        var isGood = true
        print("\n| a dependent's first build | | |\n|---|---:|---|")
        for (name, value) in Self.limits {
            let (now, before) = (self[keyPath: value], recorded?[keyPath: value])
            let isMore = before.map { Double(now) > Double($0) * (1 + Self.share) } ?? true
            isGood = isGood && !isMore
            let cell = now == before ? "\(now)" : "\(before.map { "\($0)" } ?? "?") → \(now)"
            print("| \(name) | \(cell) | \(isMore ? "**more**" : "") |")
        }
        return isGood
    }
}

/// A package as described by `swift package describe`.
private struct Package: Decodable {
    struct Product: Decodable {
        var name: String
        var targets: [String]
    }
    struct Target: Decodable {
        var name: String
        var path: String
        var sources: [String]
        var targetDependencies: [String]?
    }

    var products: [Product]
    var targets: [Target]

    /// Returns the targets of a product, and their dependencies.
    func targets(of product: String) -> [Target] {
        var names = products.first { $0.name == product }?.targets ?? []
        var found: [Target] = []
        while let name = names.popLast() {
            guard !found.contains(where: { $0.name == name }), let target = targets.first(where: { $0.name == name })
            else { continue }
            found.append(target)
            names += target.targetDependencies ?? []
        }
        return found
    }
}

extension Comparison {
    func build(_ scratch: URL) throws -> Build {
        let root = file.deletingLastPathComponent().deletingLastPathComponent()
        let description = try output(["swift", "package", "--package-path", root.path, "describe", "--type", "json"])
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        let package = try decoder.decode(Package.self, from: Data(description.utf8))
        var lines = 0
        for target in package.targets(of: "RunLoopKit") {
            for source in target.sources where source.hasSuffix(".swift") {
                let path = root.appendingPathComponent(target.path).appendingPathComponent(source)
                for line in try String(contentsOf: path, encoding: .utf8).split(separator: "\n") {
                    let code = line.drop { $0 == " " }
                    if !code.isEmpty, !code.hasPrefix("//") { lines += 1 }
                }
            }
        }
        guard lines > 0 else { throw Failure(description: "the product RunLoopKit has no sources") }
        let program = scratch.appendingPathComponent("Smallest").path
        _ = try output(["strip", "-o", program, programs.appendingPathComponent("Smallest").path])
        return Build(lines: lines, bytes: try Data(contentsOf: URL(fileURLWithPath: program)).count)
    }
}
