/// The cost of an operation.
struct Count: Codable {
    var instructions: Double
    var allocations: Double
    var systemCalls: Double
    var sleeps: Double

    static let limits = [
        Limit(name: "instructions", value: \.instructions, share: 0.03, rest: 5),
        Limit(name: "allocations", value: \.allocations, share: 0, rest: 0.05),
        Limit(name: "system calls", value: \.systemCalls, share: 0, rest: 0.05),
        Limit(name: "sleeps", value: \.sleeps, share: 0, rest: 0.05),
    ]
}

/// The permitted growth of a count: a share of it, and a constant for parts that differ between runs.
struct Limit {
    var name: String
    var value: KeyPath<Count, Double> & Sendable
    var share: Double
    var rest: Double

    /// Returns `true` if a count exceeds the limit, also for an operation that was not recorded.
    func isExceeded(by count: Count, before: Count?) -> Bool {
        guard let before else { return true }
        return count[keyPath: value] > before[keyPath: value] * (1 + share) + rest
    }
}

/// The conditions of the counts besides the source.
struct Origin: Codable, Equatable, CustomStringConvertible {
    var architecture: String
    var compiler: String
    var libc: String
    var libevent: String
    var valgrind: String

    var description: String { "\(architecture), \(compiler), \(libc), libevent \(libevent), \(valgrind)" }
}

/// The file with the recorded counts.
struct Record: Codable {
    var origin: Origin
    var counts: [String: Count]
    var build: Build?
}

extension Double {
    func rounded(to digits: Int) -> Double {
        let factor = (0..<digits).reduce(1.0) { factor, _ in factor * 10 }
        return (self * factor).rounded() / factor
    }

    /// The value as text, without meaningless decimals.
    var plain: String { self == rounded() ? String(Int(self)) : "\(self)" }
}
