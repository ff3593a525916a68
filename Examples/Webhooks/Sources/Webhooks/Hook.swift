import FoundationEssentials
import RunLoopKit

/// A hook that was accepted, and has to be delivered.
struct Hook: Codable, Sendable {
    /// Its number in the log.
    let number: Int
    let destination: String
    /// The `Idempotency-Key` of each delivery, by which the destination sees that it has the hook already.
    let key: String
    let date: RunLoop.WallTime
    /// The JSON, as it came.
    let body: String
    /// The number of tries that have failed since the start of the service.
    var failures = 0
}

/// A line of the log: a checksum, a space, and this as JSON.
struct LogLine: Codable, Sendable {
    let number: Int
    /// The hook of that number; `nil` if it was delivered or given up.
    var hook: Hook?

    func encoded() throws -> [UInt8] {
        let json = try JSONEncoder().encode(self)
        return Self.checksum(json) + json + [UInt8(ascii: "\n")]
    }

    /// Reads lines up to the first that a crash has left incomplete, and returns the number of bytes in them.
    static func read(_ bytes: [UInt8], _ body: (LogLine) -> Void) -> Int {
        var start = 0
        while let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) {
            let json = Data(bytes[start..<end].drop { $0 != UInt8(ascii: "{") })
            guard bytes[start..<end].elementsEqual(checksum(json) + json),
                let line = try? JSONDecoder().decode(LogLine.self, from: json)
            else { break }
            body(line)
            start = end + 1
        }
        return start
    }

    /// FNV-1a with 64 bits, as digits with a space behind them.
    private static func checksum(_ bytes: Data) -> [UInt8] {
        let sum = bytes.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        return Array("\(sum) ".utf8)
    }
}
