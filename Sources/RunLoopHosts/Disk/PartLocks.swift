internal import Glibc
internal import RunLoopCore

/// The locks of parts of a file, as `fcntl` takes them for a process or for an open file. Its observers learn of each
/// release.
final class PartLocks: OpenDescription {
    struct Lock {
        /// The process, or the open file.
        let owner: ObjectIdentifier
        /// The number of the process; -1 for the lock of an open file.
        let process: Int32
        let isShared: Bool
        var part: Range<Int>
    }

    /// The locks: each owner's together, by their starts, and the owners by their first locks, as Linux has them. Those of
    /// one owner do not overlap.
    private var locks: [Lock] = []

    override var readiness: DescriptorEvents? { [] }

    /// Returns the first lock of another owner that does not go with a new one.
    func conflict(with new: Lock) -> Lock? {
        locks.first { $0.owner != new.owner && $0.part.overlaps(new.part) && !($0.isShared && new.isShared) }
    }

    /// Returns `true` if a lock of all bytes is held already, in the same way.
    func has(_ lock: Lock) -> Bool { locks.contains { $0.owner == lock.owner && $0.isShared == lock.isShared } }

    /// Returns the first lock of an owner that has bytes of a part.
    func first(of owner: ObjectIdentifier, in part: Range<Int>) -> Lock? {
        locks.first { $0.owner == owner && $0.part.overlaps(part) }
    }

    /// Adds a lock that goes with the others, in place of the owner's present ones.
    func add(_ new: Lock) {
        let start = locks.firstIndex { $0.owner == new.owner } ?? locks.count
        free(new.part, of: new.owner)
        var new = new
        // Neighbours of one kind become one lock, as on Linux.
        for lock in locks where lock.owner == new.owner && lock.isShared == new.isShared {
            if lock.part.upperBound == new.part.lowerBound { new.part = lock.part.lowerBound..<new.part.upperBound }
            if lock.part.lowerBound == new.part.upperBound { new.part = new.part.lowerBound..<lock.part.upperBound }
        }
        locks.removeAll { $0.owner == new.owner && $0.part.overlaps(new.part) }
        let isBefore = { (lock: Lock) in lock.owner == new.owner && lock.part.lowerBound < new.part.lowerBound }
        locks.insert(new, at: start + locks[start...].prefix(while: isBefore).count)
        // A lock that has become shared lets others in.
        tell()
    }

    /// Releases an owner's locks, as far as they are within a part.
    func release(_ part: Range<Int> = 0..<Int.max, of owner: ObjectIdentifier) {
        guard locks.contains(where: { $0.owner == owner }) else { return }
        free(part, of: owner)
        tell()
    }

    /// Forgets all locks, after a crash.
    func removeAll() { locks.removeAll() }

    private func free(_ part: Range<Int>, of owner: ObjectIdentifier) {
        locks = locks.flatMap { lock in
            guard lock.owner == owner, lock.part.overlaps(part) else { return [lock] }
            let ends = [
                lock.part.lowerBound..<max(lock.part.lowerBound, part.lowerBound),
                min(lock.part.upperBound, part.upperBound)..<lock.part.upperBound,
            ]
            return ends.filter { !$0.isEmpty }.map { end in
                var rest = lock
                rest.part = end
                return rest
            }
        }
    }
}
