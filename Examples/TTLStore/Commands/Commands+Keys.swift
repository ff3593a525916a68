// Keys, regardless of their values.

import Glibc

extension Commands {
    static let keys: [Command] = [
        Command("DEL", 2..., .each, .writes) { $0.count($1, &$3, where: $0.store.remove) },
        Command("UNLINK", 2..., .each, .writes) { $0.count($1, &$3, where: $0.store.remove) },
        Command("EXISTS", 2..., .each) { $0.count($1, &$3, where: $0.store.contains) },
        Command("TYPE", 2...2, .first) { $3.simple($0.store.contains($1.key(1)) ? "string" : "none") },
        Command("KEYS", 2...2, .all) { $0.allKeys($1, &$3) },
        Command("SCAN", 2...) { $0.scan($1, &$3) },
        Command("DBSIZE", 1...1, .all) { $3.integer($0.store.table.count) },
        Command("FLUSHALL", 1..., .all, .writes) { $0.removeAll($1, &$3) },
        Command("FLUSHDB", 1..., .all, .writes) { $0.removeAll($1, &$3) },
    ]

    private func count(_ request: Request, _ reply: inout Reply, where matches: (Key) -> Bool) {
        reply.integer((1..<request.count).count { matches(request.key($0)) })
    }

    private func allKeys(_ request: Request, _ reply: inout Reply) {
        let glob = Glob(request.value(1))
        var found: [Key] = []
        for shard in 0..<Table.shardCount {
            found += store.keys(inShard: shard).filter { glob.matches($0.bytes) }
        }
        reply.array(count: found.count)
        for key in found where !reply.isFull { reply.bulk(key.bytes) }
    }

    /// Returns a cursor as `strtoul` reads it: also with a sign, with which it counts from the other end of all
    /// numbers.
    private static func cursor(_ text: String) -> UInt? {
        text.withCString { start in
            guard isspace(Int32(UInt8(bitPattern: start.pointee))) == 0 else { return nil }
            errno = 0
            var end: UnsafeMutablePointer<CChar>?
            let number = strtoul(start, &end, 10)
            return end!.pointee == 0 && errno != ERANGE ? number : nil
        }
    }

    /// Performs SCAN. The cursor is the next shard. A key never changes its shard, so a complete iteration returns each
    /// key that existed all the time exactly once.
    private func scan(_ request: Request, _ reply: inout Reply) {
        guard let cursor = Self.cursor(request.text(1)) else { return reply.error("ERR invalid cursor") }
        var glob: Glob?
        var most = 10
        var hasType = true
        var index = 2
        while index < request.count {
            guard index + 1 < request.count else { return reply.error(Commands.syntaxError) }
            switch request.name(index) {
            case "MATCH": glob = Glob(request.value(index + 1))
            case "COUNT":
                guard let count = request.integer(index + 1) else { return reply.error(Commands.notAnInteger) }
                guard count > 0 else { return reply.error(Commands.syntaxError) }
                most = count
            case "TYPE":
                // All values are strings.
                hasType = request.text(index + 1).lowercased() == "string"
            default: return reply.error(Commands.syntaxError)
            }
            index += 2
        }
        var found: [Key] = []
        var shard = hasType ? Int(clamping: cursor) : Table.shardCount
        var seen = 0
        while shard < Table.shardCount, seen < most {
            let keys = store.withLock(ofPart: Table.part(ofShard: shard)) { store.keys(inShard: shard) }
            seen += keys.count
            found += glob.map { glob in keys.filter { glob.matches($0.bytes) } } ?? keys
            shard += 1
        }
        reply.array(count: 2)
        reply.bulk(shard < Table.shardCount ? "\(shard)" : "0")
        reply.array(count: found.count)
        for key in found where !reply.isFull { reply.bulk(key.bytes) }
    }

    private func removeAll(_ request: Request, _ reply: inout Reply) {
        if request.count > 1 {
            guard request.count == 2 else { return reply.error(Commands.syntaxError) }
            switch request.name(1) {
            case "ASYNC", "SYNC": break
            default: return reply.error(Commands.syntaxError)
            }
        }
        store.removeAll()
        reply.ok()
    }
}
