/// A change of names on a simulated disk, which a crash keeps or loses as a whole.
struct NameChange {
    /// A name in a directory.
    struct Place: Hashable {
        let directory: DirectoryNode
        let name: String
    }

    /// The changed names, each with the node that it leads to from now on.
    let entries: [(place: Place, node: DiskNode?)]
    /// `true` if a directory leaves its place. Such a change follows all earlier ones, so that nodes moved out of the
    /// directory before are not lost with it, and no directory is ever in itself.
    let takesDirectory: Bool

    func applyDurably() {
        for (place, node) in entries { place.directory.durableNames[place.name] = node }
    }
}

/// The changes of names that are not on the disk yet, in order.
struct NameJournal {
    private var changes: [NameChange] = []

    var count: Int { changes.count }

    mutating func append(_ change: NameChange) {
        changes.append(change)
    }

    /// Makes changes durable, with the earlier changes of the same names, which they follow.
    mutating func sync(where isChosen: (NameChange.Place) -> Bool) {
        var (left, synced): ([NameChange], [NameChange]) = ([], [])
        var followed: Set<NameChange.Place> = []
        var followsAll = false
        for change in changes.reversed() {
            let places = change.entries.map(\.place)
            guard followsAll || places.contains(where: { isChosen($0) || followed.contains($0) }) else {
                left.append(change)
                continue
            }
            followed.formUnion(places)
            followsAll = followsAll || change.takesDirectory
            synced.append(change)
        }
        for change in synced.reversed() { change.applyDurably() }
        changes = left.reversed()
    }

    /// Makes the first `count` changes durable, and forgets the others.
    mutating func crash(keeping count: Int) {
        for change in changes.prefix(count) { change.applyDurably() }
        changes.removeAll()
    }
}

extension DiskNode {
    /// The node's present or last place; `nil` for the root.
    var place: NameChange.Place? { directory.map { NameChange.Place(directory: $0, name: name) } }
}
