import RunLoopKit

/// Keys and values; each time to live is a timer of the loop.
///
/// The keys lie in shards. What has to see all of them, as SCAN or a snapshot, goes from shard to shard and may take its
/// time between two of them, whatever happens to the keys meanwhile.
final class Store {
    private struct Entry {
        var value: [UInt8]
        /// Milliseconds since 1970; ``Store/never`` for no time to live.
        var date = Store.never
        var timer: Timer?

        var hasExpiry: Bool { date != Store.never }
    }

    private struct Shard {
        var entries: [Key: Entry] = [:]
        var countWithExpiry = 0
    }

    /// What happens to the keys, for whoever writes it down.
    enum Change {
        case set(Key, value: [UInt8], date: Int)
        case expire(Key, date: Int)
        case remove(Key)
        case removeAll
    }

    static let never = Int.max
    static let shardCount = 4096

    let clock: WallClock
    private let loop: RunLoop
    // Unchecked as in `Server`.
    @exclusivity(unchecked) private var shards = [Shard](repeating: Shard(), count: Store.shardCount)
    @exclusivity(unchecked) private(set) var count = 0
    /// How much memory keys and values take, estimated.
    @exclusivity(unchecked) private(set) var usedMemory = 0
    /// How many keys have expired.
    private(set) var expired = 0
    /// How many keys had to go for want of memory.
    private(set) var evicted = 0
    /// How much later than its time a key has expired at most.
    private(set) var latestExpiry = Duration.zero

    /// Called with each change.
    @exclusivity(unchecked) var changeHandler: ((Change) -> Void)?
    /// Called when a key has expired.
    var expiryHandler: ((Key) -> Void)?

    init(on loop: RunLoop, clock: WallClock? = nil) {
        self.loop = loop
        self.clock = clock ?? .system(loop)
    }

    deinit {
        changeHandler = nil
        removeAll()
    }

    var countWithExpiry: Int { shards.reduce(0) { $0 + $1.countWithExpiry } }

    static func shard(of key: Key) -> Int { Int(key.spread >> 52) }

    // MARK: Values

    /// The entry of a key, unless its time has come: then it is gone, even if its timer has not fired yet.
    @inline(__always)
    private func entry(_ key: Key, in shard: Int) -> Entry? {
        guard let entry = shards[shard].entries[key] else { return nil }
        if let timer = entry.timer, timer.fireDate <= loop.now {
            expire(key, timer)
            return nil
        }
        return entry
    }

    func value(of key: Key) -> [UInt8]? { entry(key, in: Store.shard(of: key))?.value }

    func contains(_ key: Key) -> Bool { entry(key, in: Store.shard(of: key)) != nil }

    /// Stores a value; the key's time to live ends, or is the one given.
    func set(_ key: Key, _ value: [UInt8], expiry: Expiry? = nil) {
        let shard = Store.shard(of: key)
        let entry = Entry(
            value: value, date: expiry?.date ?? Store.never, timer: expiry.map { schedule(key, at: $0.instant) })
        put(entry, key, in: shard)
        changeHandler?(.set(key, value: value, date: entry.date))
    }

    private func put(_ entry: Entry, _ key: Key, in shard: Int) {
        let size = Store.size(key, entry)
        let old = shards[shard].entries.updateValue(entry, forKey: key)
        if entry.hasExpiry { shards[shard].countWithExpiry += 1 }
        usedMemory += size
        if let old { forget(key, old, shard) } else { count += 1 }
    }

    /// Takes what has left the table off the books.
    private func forget(_ key: Key, _ entry: Entry, _ shard: Int) {
        usedMemory -= Store.size(key, entry)
        if entry.hasExpiry { shards[shard].countWithExpiry -= 1 }
        entry.timer?.invalidate()
    }

    /// Changes a value in place, beginning with an empty one if there is none, and leaves the time to live as it is.
    func changeValue<Result>(of key: Key, _ change: (inout [UInt8]) -> Result) -> Result {
        let shard = Store.shard(of: key)
        if entry(key, in: shard) == nil { put(Entry(value: []), key, in: shard) }
        // In the table, so that a long value is not copied.
        var value: [UInt8] = []
        swap(&value, &shards[shard].entries[key]!.value)
        usedMemory -= value.count
        let result = change(&value)
        usedMemory += value.count
        shards[shard].entries[key]!.value = value
        if let changeHandler { changeHandler(.set(key, value: value, date: shards[shard].entries[key]!.date)) }
        return result
    }

    func remove(_ key: Key) -> Bool {
        let shard = Store.shard(of: key)
        guard entry(key, in: shard) != nil else { return false }
        drop(key, in: shard)
        return true
    }

    private func drop(_ key: Key, in shard: Int) {
        guard let entry = shards[shard].entries.removeValue(forKey: key) else { return }
        count -= 1
        forget(key, entry, shard)
        changeHandler?(.remove(key))
    }

    func removeAll() {
        for shard in shards where shard.countWithExpiry > 0 {
            for entry in shard.entries.values { entry.timer?.invalidate() }
        }
        shards = [Shard](repeating: Shard(), count: Store.shardCount)
        (count, usedMemory) = (0, 0)
        changeHandler?(.removeAll)
    }

    // MARK: Times to live

    /// When a key expires, in milliseconds since 1970, or ``never``; `nil` if there is no such key.
    func date(of key: Key) -> Int? { entry(key, in: Store.shard(of: key))?.date }

    /// How long a key with a time to live has still to live.
    func timeLeft(of key: Key) -> Duration? {
        guard let entry = entry(key, in: Store.shard(of: key)), let timer = entry.timer else { return nil }
        guard timer.fireDate < .distantFuture else { return .milliseconds(entry.date) - .milliseconds(clock.now) }
        return timer.fireDate - loop.now
    }

    /// Gives a key a time to live, or takes it away. A key whose time has come already is removed.
    func setExpiry(of key: Key, to expiry: Expiry?) {
        let shard = Store.shard(of: key)
        guard let entry = entry(key, in: shard) else { return }
        if let expiry, expiry.instant <= loop.now { return drop(key, in: shard) }
        var changed = entry
        changed.date = expiry?.date ?? Store.never
        if let timer = entry.timer, let expiry {
            timer.fireDate = expiry.instant
            shards[shard].entries[key] = changed
        } else {
            changed.timer = expiry.map { schedule(key, at: $0.instant) }
            put(changed, key, in: shard)
        }
        changeHandler?(.expire(key, date: changed.date))
    }

    private func schedule(_ key: Key, at date: RunLoop.Instant) -> Timer {
        let timer = Timer(fire: date, interval: .zero, repeats: false) { [unowned self] in expire(key, $0) }
        loop.add(timer, forMode: .common)
        return timer
    }

    private func expire(_ key: Key, _ timer: Timer) {
        latestExpiry = max(latestExpiry, loop.now - timer.fireDate)
        expired += 1
        drop(key, in: Store.shard(of: key))
        expiryHandler?(key)
    }

    // MARK: All keys

    /// Calls the body with what one shard holds, in no order.
    func forEach(inShard shard: Int, _ body: (Key, [UInt8], _ date: Int) -> Void) {
        for (key, entry) in shards[shard].entries { body(key, entry.value, entry.date) }
    }

    /// The keys of a shard whose time has not come.
    func keys(inShard shard: Int) -> [Key] {
        guard !shards[shard].entries.isEmpty else { return [] }
        let now = loop.now
        return shards[shard].entries.compactMap { key, entry in
            entry.timer.map { $0.fireDate <= now } == true ? nil : key
        }
    }

    // MARK: Memory

    private static func size(_ key: Key, _ entry: Entry) -> Int {
        // The table's room for the key and its entry, two arrays, and a timer: measured with a million keys.
        key.bytes.count + entry.value.count + (entry.hasExpiry ? 370 : 160)
    }

    /// Which key has to go when there is no room for another.
    enum Eviction: String, CaseIterable {
        /// None: the command is refused.
        case none = "noeviction"
        /// Among some keys with a time to live, the one with the least of it.
        case soonest = "volatile-ttl"
        /// Any key.
        case random = "allkeys-random"
    }

    /// Removes keys until no more memory is used than this.
    ///
    /// - Returns: `false` if none is left that may go.
    func evict(downTo most: Int, _ policy: Eviction) -> Bool {
        while usedMemory > most {
            guard let key = victim(policy) else { return false }
            evicted += 1
            drop(key, in: Store.shard(of: key))
        }
        return true
    }

    private func victim(_ policy: Eviction) -> Key? {
        let first = Int.random(in: 0..<Store.shardCount)
        let order = (0..<Store.shardCount).lazy.map { (first + $0) % Store.shardCount }
        switch policy {
        case .none: return nil
        case .random:
            guard let shard = order.first(where: { !self.shards[$0].entries.isEmpty }) else { return nil }
            return shards[shard].entries.keys.randomElement()
        case .soonest:
            // The next shards that have any, until there are some keys to choose from.
            var soonest: (key: Key, date: Int)?
            var seen = 0
            for shard in order where shards[shard].countWithExpiry > 0 {
                for (key, entry) in shards[shard].entries where entry.date < soonest?.date ?? Store.never {
                    soonest = (key, entry.date)
                }
                seen += shards[shard].countWithExpiry
                if seen >= 16 { break }
            }
            return soonest?.key
        }
    }

    // MARK: Restoring

    /// Makes a change that was written down earlier. Timers begin, and what has expired meanwhile goes, with
    /// ``endRestoring()``.
    func restore(_ change: Change) {
        switch change {
        case .set(let key, let value, let date): put(Entry(value: value, date: date), key, in: Store.shard(of: key))
        case .expire(let key, let date):
            let shard = Store.shard(of: key)
            guard var entry = shards[shard].entries[key] else { return }
            entry.date = date
            put(entry, key, in: shard)
        case .remove(let key): drop(key, in: Store.shard(of: key))
        case .removeAll: removeAll()
        }
    }

    func endRestoring() {
        for shard in shards.indices where shards[shard].countWithExpiry > 0 {
            for (key, entry) in shards[shard].entries where entry.hasExpiry {
                let expiry = clock.expiry(at: entry.date)
                if expiry.instant > loop.now {
                    shards[shard].entries[key]!.timer = schedule(key, at: expiry.instant)
                } else {
                    drop(key, in: shard)
                }
            }
        }
    }
}
