internal import Glibc
internal import RunLoopUnix

/// A file or a directory of a simulated disk, independent of its name.
class DiskNode {
    /// The node's present or last name; empty for the root.
    final var name: String
    /// The directory that has or had the name; `nil` for the root.
    final weak var directory: DirectoryNode?
    /// The open file that holds the lock.
    final weak var lock: AnyObject?
    /// The locks of parts of the file.
    final let partLocks = PartLocks()
    /// The number of times that the node is open. A removed node that is open counts as one opening of its directory.
    final var openings = 0

    /// The owner and the permissions, which a crash keeps from the moment at which they change.
    final var ownership: Ownership

    init(_ name: String, in directory: DirectoryNode?, _ ownership: Ownership) {
        (self.name, self.directory, self.ownership) = (name, directory, ownership)
    }

    /// Throws if a user may not use the node.
    final func check(_ use: Ownership.Use, _ user: ChildProcess.User) throws(Refusal) {
        if !ownership.allows(use, to: user) { throw Refusal(EACCES) }
    }

    /// `true` if the node's name leads to it.
    final var isNamed: Bool { name.isEmpty || directory?.names[name] === self }

    /// The present or last path from the root.
    final var path: String {
        guard let directory, !directory.name.isEmpty else { return "/\(name)" }
        return "\(directory.path)/\(name)"
    }

    /// Loses the state that a crash does not keep.
    func crash() {
        (lock, openings) = (nil, 0)
        partLocks.removeAll()
    }
}

/// The reason why a call of a disk fails.
struct Refusal: Error {
    let reason: Int32

    init(_ reason: Int32) {
        self.reason = reason
    }
}
