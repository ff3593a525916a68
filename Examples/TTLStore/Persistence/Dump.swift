/// All keys as frames of a new file, piece by piece, while the store goes on.
///
/// It goes from shard to shard. A change to a shard that it has passed is appended behind; a change to one that is still
/// to come will be found there. So the file tells, at its end, what the store holds at that time, and nothing is copied
/// or kept waiting meanwhile.
struct Dump {
    private let pieceSize: Int
    private var shard = 0
    private var bytes: [UInt8] = []

    /// - Parameter pieceSize: about how many bytes are written down at a time.
    init(pieceSize: Int = 64 * 1024) {
        self.pieceSize = pieceSize
    }

    /// Whether all shards have been passed.
    var isComplete: Bool { shard == Store.shardCount }

    /// Notes a change to the store. Call it with each until ``isComplete``.
    mutating func note(_ change: Store.Change) {
        switch change {
        case .set(let key, _, _), .expire(let key, _), .remove(let key):
            guard Store.shard(of: key) < shard else { return }
        case .removeAll: break
        }
        Record.append(change, to: &bytes)
    }

    /// The next frame, with what has been noted since the last one.
    mutating func next(of store: Store) -> [UInt8] {
        while !isComplete, bytes.count < pieceSize {
            store.forEach(inShard: shard) { key, value, date in
                Record.append(.set(key, value: value, date: date), to: &bytes)
            }
            shard += 1
        }
        defer { bytes = [] }
        return bytes
    }

    /// Writes all keys at once.
    static func write(_ store: Store, to file: FrameFile) throws(DiskError) {
        var dump = Dump()
        while !dump.isComplete {
            let frame = dump.next(of: store)
            if !frame.isEmpty { try file.append(frame) }
        }
    }
}
