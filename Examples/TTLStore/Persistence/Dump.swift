/// All keys as frames of a new file, piece by piece, while the stores continue.
///
/// A dump proceeds from shard to shard. A change to a shard already passed is appended; a change to a later shard will
/// be found there. So, after each frame from the last shard's on, the file has the contents of the table at that time,
/// and nothing is copied or kept waiting meanwhile.
final class Dump: Sendable {
    private let pieceSize: Int
    private let state = Shared(State())

    private struct State {
        var shard = 0
        var bytes: [UInt8] = []

        var isComplete: Bool { shard == Table.shardCount }
    }

    /// - Parameter pieceSize: the approximate number of bytes written at a time.
    init(pieceSize: Int = 64 * 1024) {
        self.pieceSize = pieceSize
    }

    /// `true` once all shards have been passed.
    var isComplete: Bool { state.withLock { $0.isComplete } }

    /// Notes a change, whose key is locked. Any thread.
    func note(_ change: Store.Change) {
        state.withLock { state in
            switch change {
            case .set(let key, _, _), .expire(let key, _), .remove(let key):
                guard key.shard < state.shard else { return }
            case .removeAll: break
            }
            Record.append(change, to: &state.bytes)
        }
    }

    /// Returns the next frame, with the changes noted since the last one; empty if there are none left. One thread at a
    /// time.
    func next(of table: Table) -> [UInt8] {
        // Changes do not count: each frame has some keys, however many changes there are.
        var size = 0
        while size < pieceSize, let shard = nextShard {
            table.withLock(ofPart: Table.part(ofShard: shard)) {
                state.withLock { state in
                    let start = state.bytes.count
                    for (key, entry) in table[shard].entries {
                        Record.append(.set(key, value: entry.value, date: entry.date), to: &state.bytes)
                    }
                    size += state.bytes.count - start
                    state.shard += 1
                }
            }
        }
        return state.withLock { state in
            defer { state.bytes = [] }
            return state.bytes
        }
    }

    /// The next shard.
    private var nextShard: Int? { state.withLock { $0.isComplete ? nil : $0.shard } }

    /// Writes all keys at once.
    static func write(_ table: Table, to file: FrameFile) throws(DiskError) {
        let dump = Dump()
        while !dump.isComplete {
            let frame = dump.next(of: table)
            if !frame.isEmpty { try file.append(frame) }
        }
    }
}
