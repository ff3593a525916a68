import RunLoopKit

/// A key: any bytes.
struct Key: Hashable {
    let bytes: [UInt8]

    init(_ bytes: UnsafeBufferPointer<UInt8>) {
        self.bytes = [UInt8](bytes)
    }

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    // All bytes at once: the array would combine them one by one, which takes three times as long for 16 bytes.
    func hash(into hasher: inout Hasher) {
        bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
    }
}

/// Keys and values; each time to live is a timer of the loop.
final class Store {
    private struct Entry {
        var value: [UInt8]
        var expiry: Timer?
    }

    private let loop: RunLoop
    // Unchecked as in `Server`.
    @exclusivity(unchecked) private var entries: [Key: Entry] = [:]
    /// How many keys have expired.
    private(set) var expired = 0
    /// How much later than its time a key has expired at most.
    private(set) var latestExpiry = Duration.zero

    init(on loop: RunLoop) {
        self.loop = loop
    }

    deinit {
        removeAll()
    }

    var count: Int { entries.count }
    var countWithExpiry: Int { entries.values.count { $0.expiry != nil } }

    func value(of key: Key) -> [UInt8]? { entries[key]?.value }

    func contains(_ key: Key) -> Bool { entries[key] != nil }

    /// Stores a value; the key's time to live ends, or is the one given.
    func set(_ key: Key, _ value: [UInt8], expiry: RunLoop.Instant?) {
        let timer = expiry.map { schedule(key, at: $0) }
        let old = entries.updateValue(Entry(value: value, expiry: timer), forKey: key)
        old?.expiry?.invalidate()
    }

    /// Stores a value and leaves the time to live as it is.
    func replaceValue(of key: Key, with value: [UInt8]) {
        entries[key, default: Entry(value: value, expiry: nil)].value = value
    }

    func remove(_ key: Key) -> Bool {
        guard let entry = entries.removeValue(forKey: key) else { return false }
        entry.expiry?.invalidate()
        return true
    }

    func removeAll() {
        for entry in entries.values { entry.expiry?.invalidate() }
        entries = [:]
    }

    /// When the key expires; `nil` if never.
    func expiry(of key: Key) -> RunLoop.Instant? { entries[key]?.expiry?.fireDate }

    /// Gives a key a time to live, or takes it away.
    func setExpiry(of key: Key, to date: RunLoop.Instant?) {
        guard let entry = entries[key] else { return }
        if let timer = entry.expiry, let date {
            timer.fireDate = date
        } else {
            entry.expiry?.invalidate()
            entries[key]!.expiry = date.map { schedule(key, at: $0) }
        }
    }

    private func schedule(_ key: Key, at date: RunLoop.Instant) -> Timer {
        let timer = Timer(fire: date, interval: .zero, repeats: false) { [unowned self] timer in
            entries[key] = nil
            expired += 1
            latestExpiry = max(latestExpiry, loop.now - timer.fireDate)
        }
        loop.add(timer, forMode: .common)
        return timer
    }

    func forEach(_ body: (Key, [UInt8], RunLoop.Instant?) throws -> Void) rethrows {
        for (key, entry) in entries { try body(key, entry.value, entry.expiry?.fireDate) }
    }
}
