internal import Glibc

/// The reason why a call of a disk fails.
struct Refusal: Error {
    let reason: Int32

    init(_ reason: Int32) {
        self.reason = reason
    }
}

/// The last step of a path: a name in a directory, which may lead to a node.
struct PathEnd {
    let directory: DirectoryNode
    /// The name; `.`, `..`, or empty for the root.
    let name: String
    /// Whether the path ends with a slash, and so leads to directories only.
    let hasSlash: Bool

    private static let longestName = 255

    /// Follows a path from the root up to its last step.
    init(of path: String, from root: DirectoryNode) throws(Refusal) {
        if path.isEmpty { throw Refusal(ENOENT) }
        var directory = root
        let parts = path.split(separator: "/")
        for part in parts.dropLast() {
            switch try Self(directory, part, hasSlash: true).node {
            case let next as DirectoryNode: directory = next
            case nil: throw Refusal(ENOENT)
            default: throw Refusal(ENOTDIR)
            }
        }
        self.init(directory, parts.last ?? "", hasSlash: path.hasSuffix("/"))
    }

    private init(_ directory: DirectoryNode, _ name: Substring, hasSlash: Bool) {
        (self.directory, self.name, self.hasSlash) = (directory, String(name), hasSlash)
    }

    var place: NameChange.Place { NameChange.Place(directory: directory, name: name) }

    /// Whether the last step is a name, and not a dot or the root.
    var isName: Bool { !["", ".", ".."].contains(name) }

    /// The node to which the path leads; `nil` for none.
    var node: DiskNode? {
        get throws(Refusal) {
            if name.utf8.count > Self.longestName { throw Refusal(ENAMETOOLONG) }
            return switch name {
            case "", ".": directory
            case "..": directory.directory ?? directory
            default: directory.names[name]
            }
        }
    }

    /// The node that a process can use.
    var found: DiskNode {
        get throws(Refusal) {
            guard let node = try node else { throw Refusal(ENOENT) }
            if hasSlash, !(node is DirectoryNode) { throw Refusal(ENOTDIR) }
            return node
        }
    }
}
