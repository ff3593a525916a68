internal import Glibc
internal import RunLoopUnix

/// The last step of a path: a name in a directory, which may lead to a node.
struct PathEnd {
    let directory: DirectoryNode
    /// The name; `.`, `..`, or empty for the root.
    let name: String
    /// `true` if the path ends with a slash, and so leads to directories only.
    let hasSlash: Bool

    private static let longestName = 255

    /// Follows a path from the root up to its last step, through directories that the user may search.
    init(of path: String, from root: DirectoryNode, as user: ChildProcess.User) throws(Refusal) {
        if path.isEmpty { throw Refusal(ENOENT) }
        var directory = root
        let parts = path.split(separator: "/")
        for part in parts.dropLast() {
            try directory.check(.search, user)
            switch try Self(directory, part, hasSlash: true).node {
            case let next as DirectoryNode: directory = next
            case nil: throw Refusal(ENOENT)
            default: throw Refusal(ENOTDIR)
            }
        }
        if !parts.isEmpty { try directory.check(.search, user) }
        self.init(directory, parts.last ?? "", hasSlash: path.hasSuffix("/"))
    }

    private init(_ directory: DirectoryNode, _ name: Substring, hasSlash: Bool) {
        (self.directory, self.name, self.hasSlash) = (directory, String(name), hasSlash)
    }

    var place: NameChange.Place { NameChange.Place(directory: directory, name: name) }

    /// `true` if the last step is a name, and not a dot or the root.
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
