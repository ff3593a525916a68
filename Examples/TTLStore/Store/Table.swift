import Glibc

/// All keys, in shards, for the stores of all loops.
///
/// Operations on all keys, such as SCAN or a snapshot, proceed from shard to shard and may pause between two of them,
/// whatever happens to the keys meanwhile. Sixty-four shards are a part, which has a lock.
final class Table: @unchecked Sendable {
    // Unchecked: the contents of a part, and its number of keys, are accessed under the part's lock.

    struct Entry {
        var value: [UInt8]
        /// The date of the expiry in milliseconds since 1970; ``Store/never`` for no time to live.
        var date = Store.never
        var expiration: Expiration?

        var hasExpiry: Bool { date != Store.never }
    }

    struct Shard {
        var entries: [Key: Entry] = [:]
        var countWithExpiry = 0
    }

    /// A lock padded to a line of the cache, so that threads that use different parts do not wait for each other.
    private struct Lock {
        var mutex = pthread_mutex_t()
        var padding = (0, 0, 0)
    }

    static let shardCount = 4096
    static let partCount = 64

    /// `true` if the stores of several loops use the table. Otherwise no lock is taken.
    private let isShared: Bool
    private let locks = UnsafeMutablePointer<Lock>.allocate(capacity: partCount)
    private let shards = UnsafeMutablePointer<Shard>.allocate(capacity: shardCount)
    private let ledgers = Shared<[Ledger]>([])

    init(isShared: Bool = true) {
        self.isShared = isShared
        locks.initialize(repeating: Lock(), count: Table.partCount)
        for part in 0..<Table.partCount { pthread_mutex_init(&locks[part].mutex, nil) }
        shards.initialize(repeating: Shard(), count: Table.shardCount)
    }

    deinit {
        shards.deinitialize(count: Table.shardCount).deallocate()
        locks.deallocate()
    }

    @inline(__always)
    static func part(ofShard shard: Int) -> Int { shard / (shardCount / partCount) }

    @inline(__always)
    subscript(shard: Int) -> Shard {
        unsafeAddress { UnsafePointer(shards + shard) }
        unsafeMutableAddress { shards + shard }
    }

    /// Calls the body while no other thread reads or changes a key of the part.
    @inline(__always)
    func withLock<Result>(ofPart part: @autoclosure () -> Int, _ body: () -> Result) -> Result {
        guard isShared else { return body() }
        let part = part()
        pthread_mutex_lock(&locks[part].mutex)
        defer { pthread_mutex_unlock(&locks[part].mutex) }
        return body()
    }

    /// Calls the body while no other thread reads or changes a key of these parts.
    func withLocks<Result>(of parts: Parts, _ body: () -> Result) -> Result {
        guard isShared else { return body() }
        // All threads take them in the same order.
        parts.forEach { pthread_mutex_lock(&locks[$0].mutex) }
        defer { parts.forEach { pthread_mutex_unlock(&locks[$0].mutex) } }
        return body()
    }

    /// Parts that are locked together.
    struct Parts {
        private var bits: UInt64 = 0

        static let all = Parts(bits: .max)

        mutating func insert(_ part: Int) {
            bits |= 1 << UInt64(part)
        }

        func forEach(_ body: (Int) -> Void) {
            var rest = bits
            while rest != 0 {
                body(rest.trailingZeroBitCount)
                rest &= rest - 1
            }
        }
    }

    // MARK: All stores

    func add(_ ledger: Ledger) {
        ledgers.withLock { $0.append(ledger) }
    }

    /// The estimated memory of keys and values.
    var usedMemory: Int { ledgers.withLock { $0.reduce(0) { $0 + $1.memory.value } } }
    /// The number of keys that have expired.
    var expired: Int { ledgers.withLock { $0.reduce(0) { $0 + $1.expired.value } } }
    /// The number of keys removed for lack of memory.
    var evicted: Int { ledgers.withLock { $0.reduce(0) { $0 + $1.evicted.value } } }
    /// The longest delay of a key's expiry.
    var latestExpiry: Duration { .nanoseconds(ledgers.withLock { $0.map { $0.latestExpiry.value }.max() ?? 0 }) }

    /// The number of keys. All keys must be locked.
    var count: Int { (0..<Table.shardCount).reduce(0) { $0 + self[$1].entries.count } }
    /// The number of keys with a time to live.
    var countWithExpiry: Int { (0..<Table.shardCount).reduce(0) { $0 + self[$1].countWithExpiry } }
}
