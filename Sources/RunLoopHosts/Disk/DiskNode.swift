internal import Glibc
internal import RunLoopUnix

/// A file, a directory or a symbolic link of a simulated disk, independent of its names.
class DiskNode {
    /// The node's present or last name, or one of them; empty for the root.
    final var name: String
    /// The directory that has or had that name; `nil` for the root.
    final weak var directory: DirectoryNode?
    /// The number of names that lead to the node.
    final var nameCount = 0
    /// The node's number for programs of the system; 0 until one asks.
    final var number = 0
    /// The locks of the whole file, each of an open file.
    final let locks = PartLocks()
    /// The locks of parts of the file.
    final let partLocks = PartLocks()
    /// The number of times that the node is open. A removed node that is open counts as one opening of its directory.
    final var openings = 0

    /// The owner and the permissions, which a crash keeps from the moment at which they change.
    final var ownership: Ownership
    final var times = FileTimes()

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
        openings = 0
        locks.removeAll()
        partLocks.removeAll()
    }
}

/// A symbolic link of a simulated disk.
final class LinkNode: DiskNode {
    /// The path to which the link leads.
    let target: String

    init(_ name: String, in directory: DirectoryNode, to target: String, of user: ChildProcess.User) {
        self.target = target
        super.init(name, in: directory, Ownership(user, 0o777))
    }
}

/// The times of a file or a directory on its machine's wall clock, in nanoseconds since the beginning of 1970.
struct FileTimes {
    var read: Int64 = 0
    /// The time of the last change of the content.
    var written: Int64 = 0
    /// The time of the last change of the content or of the facts about the file.
    var changed: Int64 = 0

    /// Notes a change of the content.
    mutating func noteWriting(at time: Int64) { (written, changed) = (time, time) }

    /// Notes that the content was read: as on Linux, if it has changed since the last note, or that is a day old.
    mutating func noteReading(at time: Int64) {
        let day: Int64 = 86_400_000_000_000
        if read <= max(written, changed) || time - read >= day { read = time }
    }
}

/// The reason why a call of a disk fails.
struct Refusal: Error {
    let reason: Int32

    init(_ reason: Int32) {
        self.reason = reason
    }
}
