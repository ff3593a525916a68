import RunLoopKit

/// Keys and values, as one loop reads and changes them; each time to live is a timer of the loop.
///
/// The keys are in a table, which the stores of several loops can share. Keys are locked while they are used: see
/// ``Table``. A time to live is a timer of the loop that began it, even if another loop changes the key later.
final class Store {
    /// A change of the keys, for the files.
    enum Change {
        case set(Key, value: [UInt8], date: Int)
        case expire(Key, date: Int)
        case remove(Key)
        case removeAll
    }

    static let never = Int.max

    let clock: WallClock
    let table: Table
    private let loop: RunLoop
    private let ledger: Ledger
    /// Expired keys that were not yet reported, which has to wait until nothing is locked.
    // Unchecked as in `Server`.
    @exclusivity(unchecked) private var untold: [Key] = []
    /// `true` if anything has been changed since this was last set to `false`.
    @exclusivity(unchecked) var hasChanged = false

    /// Called with each change, while its key is locked.
    @exclusivity(unchecked) var changeHandler: ((Change) -> Void)?
    /// Called when a key has expired.
    var expiryHandler: ((Key) -> Void)?

    init(on loop: RunLoop, sharing table: Table = Table(isShared: false), clock: WallClock? = nil) {
        self.loop = loop
        self.table = table
        self.clock = clock ?? .system(loop)
        ledger = Ledger(loop.remote)
        table.add(ledger)
    }

    deinit {
        // Expired keys can no longer be reported.
        for shard in 0..<Table.shardCount {
            table.withLock(ofPart: Table.part(ofShard: shard)) {
                guard table[shard].countWithExpiry > 0 else { return }
                for entry in table[shard].entries.values where entry.expiration?.owner === ledger { cancel(entry) }
            }
        }
    }

    // MARK: Locking

    /// Calls the body while this store alone has the keys in the part, and reports expired keys afterwards.
    @inline(__always)
    func withLock<Result>(ofPart part: @autoclosure () -> Int, _ body: () -> Result) -> Result {
        let result = table.withLock(ofPart: part(), body)
        if !untold.isEmpty { tell() }
        return result
    }

    /// Calls the body while this store alone has the keys in these parts.
    func withLocks<Result>(of parts: Table.Parts, _ body: () -> Result) -> Result {
        let result = table.withLocks(of: parts, body)
        if !untold.isEmpty { tell() }
        return result
    }

    private func tell() {
        let expired = untold
        untold = []
        for key in expired { expiryHandler?(key) }
    }

    // MARK: Values

    /// Returns the entry of a key. An entry whose time has come is removed instead, even if its timer has not fired
    /// yet.
    @inline(__always)
    private func entry(_ key: Key, in shard: Int) -> Table.Entry? {
        guard let entry = table[shard].entries[key] else { return nil }
        if let expiration = entry.expiration, expiration.date <= loop.now {
            expire(key, expiration)
            return nil
        }
        return entry
    }

    func value(of key: Key) -> [UInt8]? { entry(key, in: key.shard)?.value }

    func contains(_ key: Key) -> Bool { entry(key, in: key.shard) != nil }

    /// Stores a value; the key's time to live ends, or becomes the given one.
    func set(_ key: Key, _ value: [UInt8], expiry: Expiry? = nil) {
        let entry = Table.Entry(
            value: value, date: expiry?.date ?? Store.never, expiration: expiry.map { schedule(key, at: $0.instant) })
        put(entry, key, in: key.shard)
        note(.set(key, value: value, date: entry.date))
    }

    @inline(__always)
    private func note(_ change: @autoclosure () -> Change) {
        hasChanged = true
        if let changeHandler { changeHandler(change()) }
    }

    private func put(_ entry: Table.Entry, _ key: Key, in shard: Int) {
        let size = Store.size(key, entry)
        let old = table[shard].entries.updateValue(entry, forKey: key)
        if entry.hasExpiry { table[shard].countWithExpiry += 1 }
        ledger.memory.value += size
        if let old { forget(key, old, shard) }
    }

    /// Updates the counts for an entry that has left the table, and cancels its timer.
    private func forget(_ key: Key, _ entry: Table.Entry, _ shard: Int) {
        ledger.memory.value -= Store.size(key, entry)
        if entry.hasExpiry { table[shard].countWithExpiry -= 1 }
        cancel(entry)
    }

    /// Changes a value in place, beginning with an empty one if there is none, and leaves the time to live as it is.
    func changeValue<Result>(of key: Key, _ change: (inout [UInt8]) -> Result) -> Result {
        let shard = key.shard
        if entry(key, in: shard) == nil { put(Table.Entry(value: []), key, in: shard) }
        // In the table, so that a long value is not copied.
        var value: [UInt8] = []
        swap(&value, &table[shard].entries[key]!.value)
        ledger.memory.value -= value.count
        let result = change(&value)
        ledger.memory.value += value.count
        table[shard].entries[key]!.value = value
        note(.set(key, value: value, date: table[shard].entries[key]!.date))
        return result
    }

    func remove(_ key: Key) -> Bool {
        let shard = key.shard
        guard entry(key, in: shard) != nil else { return false }
        drop(key, in: shard)
        return true
    }

    private func drop(_ key: Key, in shard: Int) {
        guard let entry = table[shard].entries.removeValue(forKey: key) else { return }
        forget(key, entry, shard)
        note(.remove(key))
    }

    /// Removes all keys, which are locked.
    func removeAll() {
        var foreign: [ObjectIdentifier: [Expiration]] = [:]
        for shard in 0..<Table.shardCount {
            if table[shard].countWithExpiry > 0 {
                for expiration in table[shard].entries.values.lazy.compactMap(\.expiration) {
                    if expiration.owner === ledger {
                        expiration.call?.cancel()
                    } else {
                        foreign[ObjectIdentifier(expiration.owner), default: []].append(expiration)
                    }
                }
            }
            table[shard] = Table.Shard()
        }
        for expirations in foreign.values { Expiration.cancel(expirations) }
        ledger.memory.value -= table.usedMemory
        note(.removeAll)
    }

    // MARK: Times to live

    /// Returns the time when a key expires, in milliseconds since 1970, or ``never``; `nil` if there is no such key.
    func date(of key: Key) -> Int? { entry(key, in: key.shard)?.date }

    /// Returns the remaining time to live of a key that has one.
    func timeLeft(of key: Key) -> Duration? {
        guard let entry = entry(key, in: key.shard), let expiration = entry.expiration else { return nil }
        guard expiration.date < .distantFuture else { return .milliseconds(entry.date) - .milliseconds(clock.now) }
        return expiration.date - loop.now
    }

    /// Gives a key a time to live, or removes it. A key whose time has come already is removed.
    func setExpiry(of key: Key, to expiry: Expiry?) {
        let shard = key.shard
        guard let entry = entry(key, in: shard) else { return }
        if let expiry, expiry.instant <= loop.now { return drop(key, in: shard) }
        var changed = entry
        changed.date = expiry?.date ?? Store.never
        if let expiry, let expiration = entry.expiration, expiration.owner === ledger {
            expiration.move(to: expiry.instant)
            table[shard].entries[key] = changed
        } else {
            changed.expiration = expiry.map { schedule(key, at: $0.instant) }
            put(changed, key, in: shard)
        }
        note(.expire(key, date: changed.date))
    }

    private func schedule(_ key: Key, at date: RunLoop.Instant) -> Expiration {
        let expiration = Expiration(at: date, of: ledger)
        expiration.call = loop.perform(at: date, inModes: .common) { [unowned self] in end(key, expiration) }
        return expiration
    }

    /// Removes a key whose time has come.
    private func end(_ key: Key, _ expiration: Expiration) {
        let shard = key.shard
        withLock(ofPart: Table.part(ofShard: shard)) {
            // Another loop may have been faster.
            if table[shard].entries[key]?.expiration === expiration { expire(key, expiration) }
        }
    }

    private func expire(_ key: Key, _ expiration: Expiration) {
        ledger.latestExpiry.value = max(ledger.latestExpiry.value, Int((loop.now - expiration.date) / .nanoseconds(1)))
        ledger.expired.value += 1
        drop(key, in: key.shard)
        if expiryHandler != nil { untold.append(key) }
    }

    /// Cancels the timer of an entry that has left the table.
    private func cancel(_ entry: Table.Entry) {
        guard let expiration = entry.expiration else { return }
        if expiration.owner === ledger {
            expiration.call?.cancel()
        } else {
            Expiration.cancel([expiration])
        }
    }

    // MARK: All keys

    var count: Int { withLocks(of: .all) { table.count } }
    var countWithExpiry: Int { withLocks(of: .all) { table.countWithExpiry } }

    /// Returns the keys of a shard whose time has not come.
    func keys(inShard shard: Int) -> [Key] {
        guard !table[shard].entries.isEmpty else { return [] }
        let now = loop.now
        return table[shard].entries.compactMap { key, entry in
            entry.expiration.map { $0.date <= now } == true ? nil : key
        }
    }

    // MARK: Memory

    // The table's room for a key and its entry, two arrays, and a timer: measured with a million keys.
    private static let memoryOfEntry = 160
    private static let memoryOfTimer = 210

    private static func size(_ key: Key, _ entry: Table.Entry) -> Int {
        key.bytes.count + entry.value.count + memoryOfEntry + (entry.hasExpiry ? memoryOfTimer : 0)
    }

    /// The number of bytes in records that set each key once.
    var recordSize: Int {
        withLocks(of: .all) {
            table.usedMemory + table.count * (Record.headOfSet - Store.memoryOfEntry)
                - table.countWithExpiry * Store.memoryOfTimer
        }
    }

    /// The choice of the key to remove when there is no room for another.
    enum Eviction: String, CaseIterable {
        /// No key: the command is refused.
        case none = "noeviction"
        /// The key with the shortest remaining time to live, among some keys with one.
        case soonest = "volatile-ttl"
        /// Any key.
        case random = "allkeys-random"
    }

    /// Removes keys until no more memory than `most` is used. Nothing may be locked.
    ///
    /// - Returns: `false` if no removable key is left.
    func evict(downTo most: Int, _ policy: Eviction) -> Bool {
        while table.usedMemory > most {
            guard let key = victim(policy) else { return false }
            withLock(ofPart: Table.part(ofShard: key.shard)) {
                guard table[key.shard].entries[key] != nil else { return }
                ledger.evicted.value += 1
                RunLoop.sometimes("a key was evicted")
                drop(key, in: key.shard)
            }
        }
        return true
    }

    private func victim(_ policy: Eviction) -> Key? {
        guard policy != .none else { return nil }
        var random = clock.loop.randomNumbers
        let first = Int.random(in: 0..<Table.shardCount, using: &random)
        // The next shards with keys, until there are some keys to choose from.
        var soonest: (key: Key, date: Int)?
        var seen = 0
        for shard in (0..<Table.shardCount).lazy.map({ (first + $0) % Table.shardCount }) {
            let key = table.withLock(ofPart: Table.part(ofShard: shard)) { () -> Key? in
                guard policy == .soonest else { return table[shard].entries.keys.randomElement(using: &random) }
                guard table[shard].countWithExpiry > 0 else { return nil }
                for (key, entry) in table[shard].entries where entry.date < soonest?.date ?? Store.never {
                    soonest = (key, entry.date)
                }
                seen += table[shard].countWithExpiry
                return seen >= 16 ? soonest?.key : nil
            }
            if let key { return key }
        }
        return soonest?.key
    }

    // MARK: Restoring

    /// Makes a change read from a file. Timers begin, and keys that have expired meanwhile are removed, with
    /// ``endRestoring()``.
    func restore(_ change: Change) {
        switch change {
        case .set(let key, let value, let date): put(Table.Entry(value: value, date: date), key, in: key.shard)
        case .expire(let key, let date):
            guard var entry = table[key.shard].entries[key] else { return }
            entry.date = date
            put(entry, key, in: key.shard)
        case .remove(let key): drop(key, in: key.shard)
        case .removeAll: removeAll()
        }
    }

    func endRestoring() {
        for shard in 0..<Table.shardCount where table[shard].countWithExpiry > 0 {
            for (key, entry) in table[shard].entries where entry.hasExpiry {
                let expiry = clock.expiry(at: entry.date)
                if expiry.instant > loop.now {
                    table[shard].entries[key]!.expiration = schedule(key, at: expiry.instant)
                } else {
                    drop(key, in: shard)
                }
            }
        }
    }
}
