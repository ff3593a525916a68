/// A file of a simulated disk.
final class FileNode: DiskNode {
    /// A change of the content.
    enum Change {
        case write([UInt8], at: Int)
        case truncate(Int)

        func apply(to content: inout [UInt8]) {
            switch self {
            case .write(let bytes, let offset):
                if content.count < offset + bytes.count { Change.truncate(offset + bytes.count).apply(to: &content) }
                content.replaceSubrange(offset..<offset + bytes.count, with: bytes)
            case .truncate(let length) where length < content.count: content.removeLast(content.count - length)
            case .truncate(let length): content += [UInt8](repeating: 0, count: length - content.count)
            }
        }
    }

    /// The content, without the changes that programs have made in their memory.
    private var known: [UInt8] = []
    /// The bytes that survive every crash, and the times that do.
    private var durable: [UInt8] = []
    private var durableTimes = FileTimes()
    /// The noted changes since the last sync.
    private var noted: [Change] = []
    /// The memory in which programs have mapped the file; `nil` if none has, since the start of the machine.
    private var mapped: MappedContent?

    /// The bytes that a reader finds.
    var content: [UInt8] {
        noteMappedChanges()
        return known
    }

    /// The changes since the last sync.
    var changes: [Change] {
        noteMappedChanges()
        return noted
    }

    func change(_ change: Change) {
        noteMappedChanges()
        note(change)
        guard let mapped else { return }
        // Without memory for its end, a program finds the file shorter than it is.
        guard mapped.setSize(known.count), case .write(let bytes, let offset) = change else { return }
        mapped.show(bytes, from: offset)
    }

    private func note(_ change: Change) {
        change.apply(to: &known)
        noted.append(change)
    }

    /// Replaces the content, durably.
    func install(_ content: [UInt8]) {
        change(.truncate(0))
        change(.write(content, at: 0))
        sync()
    }

    func sync() {
        (durable, durableTimes) = (content, times)
        noted.removeAll()
    }

    /// Loses the unsynced changes, except the ones that a crash keeps.
    func crash(keeping kept: some Collection<Change>) {
        for change in kept { change.apply(to: &durable) }
        // The times are on the disk with the last of the changes.
        if kept.count < noted.count { times = durableTimes }
        durableTimes = times
        noted.removeAll()
        (known, mapped) = (durable, nil)
        crash()
    }

    // MARK: Programs' memory

    /// Puts the content into memory that programs can map.
    ///
    /// - Returns: the memory's descriptor in the process of the simulation; `nil` if there is none.
    func map() -> Int32? {
        if mapped == nil { mapped = MappedContent(known) }
        return mapped?.descriptor
    }

    /// Notes the pages that programs have changed in their memory, as writes of these pages.
    private func noteMappedChanges() {
        for (bytes, offset) in mapped?.changes(since: known) ?? [] { note(.write(bytes, at: offset)) }
    }
}
