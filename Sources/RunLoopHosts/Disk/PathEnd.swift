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
    /// The most symbolic links in a path.
    private static let mostLinks = 40

    /// Follows a path from the root up to its last step, through directories that the user may search.
    ///
    /// - Parameter followsLast: `true` if the last step may lead on through a symbolic link.
    init(
        of path: String, from root: DirectoryNode, as user: ChildProcess.User, followsLast: Bool
    ) throws(Refusal) {
        if path.isEmpty { throw Refusal(ENOENT) }
        var (directory, hasSlash, linkCount) = (root, path.hasSuffix("/"), 0)
        // The steps that are left, the next one last.
        var steps = Array(path.split(separator: "/").reversed())
        while let step = steps.popLast() {
            try directory.check(.search, user)
            let end = Self(directory, step, hasSlash: hasSlash)
            let isLast = steps.isEmpty
            if let link = directory.names[end.name] as? LinkNode, !isLast || followsLast || hasSlash {
                linkCount += 1
                if linkCount > Self.mostLinks { throw Refusal(ELOOP) }
                if link.target.hasPrefix("/") { directory = root }
                if isLast, link.target.hasSuffix("/") { hasSlash = true }
                steps += link.target.split(separator: "/").reversed()
                continue
            }
            if isLast {
                self = end
                return
            }
            switch try end.node {
            case let next as DirectoryNode: directory = next
            case nil: throw Refusal(ENOENT)
            default: throw Refusal(ENOTDIR)
            }
        }
        self.init(directory, "", hasSlash: hasSlash)
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
