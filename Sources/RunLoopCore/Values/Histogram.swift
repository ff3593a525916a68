/// Counts of durations by size, with a resolution of a quarter of their size.
///
/// Recording costs a few instructions and no memory: a histogram never grows. Histograms of several loops can be added.
/// A value and `Sendable`.
public struct Histogram: Sendable, Hashable {
    /// Four buckets for each power of two of nanoseconds. The first is empty: zeros are the rest of `count`.
    private var counts = [Int](repeating: 0, count: 4 * 64)

    /// The number of recorded durations.
    public private(set) var count = 0
    private(set) var sum: Int64 = 0
    private var longest: Int64 = 0

    /// The sum of all durations.
    public var total: Duration { .nanoseconds(sum) }
    /// The longest duration; zero if there are none.
    public var maximum: Duration { .nanoseconds(longest) }

    /// Creates an empty histogram.
    public init() {}

    /// Counts a duration; a negative one counts as zero. O(1).
    public mutating func record(_ duration: Duration) {
        record(nanoseconds: duration.nanoseconds)
    }

    // Inlined into the pass: 20 instructions a fire, and 5 on virtual time, where nearly every fire is on time.
    @inline(__always)
    mutating func record(nanoseconds: Int64) {
        count += 1
        guard nanoseconds > 0 else { return }
        counts[Histogram.bucket(of: nanoseconds)] += 1
        sum = sum.saturatingAdding(nanoseconds)
        longest = max(longest, nanoseconds)
    }

    /// Returns the duration that the given share of the recorded durations does not exceed, rounded up by at most a
    /// quarter; zero if there are none. O(1).
    ///
    /// - Parameter share: the share, from 0 to 1; 0.5 for the median.
    public func quantile(_ share: Double) -> Duration {
        require((0...1).contains(share), "a quantile has a share from 0 to 1, not \(share)")
        let rank = max(1, Int((share * Double(count)).rounded(.up)))
        var seen = 0
        for (bucket, number) in allCounts.enumerated() {
            seen += number
            if number > 0, seen >= rank { return min(maximum, Histogram.upperBound(of: bucket)) }
        }
        return .zero
    }

    /// The buckets that are not empty, in order: the longest duration that each counts, and its number of durations.
    public var buckets: [(upperBound: Duration, count: Int)] {
        allCounts.enumerated().filter { $0.element > 0 }.map { (Histogram.upperBound(of: $0.offset), $0.element) }
    }

    private var allCounts: [Int] {
        var all = counts
        all[0] = count - counts.reduce(0, +)
        return all
    }

    /// Adds the counts of another histogram.
    public static func += (left: inout Histogram, right: Histogram) {
        for bucket in left.counts.indices { left.counts[bucket] += right.counts[bucket] }
        left.count += right.count
        left.sum = left.sum.saturatingAdding(right.sum)
        left.longest = max(left.longest, right.longest)
    }

    /// Returns the durations recorded since `earlier`, a former state of this histogram. The maximum still covers all
    /// durations.
    public func since(_ earlier: Histogram) -> Histogram {
        var result = self
        for bucket in counts.indices { result.counts[bucket] -= earlier.counts[bucket] }
        result.count -= earlier.count
        assert(result.count >= 0, "a histogram has no more durations than before")
        result.sum -= earlier.sum
        return result
    }

    /// Returns the bucket of a duration. Up to 3 ns each number has its own bucket; beyond, the two bits after the
    /// first choose one of four.
    private static func bucket(of nanoseconds: Int64) -> Int {
        assert(nanoseconds > 0, "zeros have no bucket")
        guard nanoseconds >= 4 else { return Int(nanoseconds) }
        let power = 63 - nanoseconds.leadingZeroBitCount
        return 4 * (power - 1) + Int(nanoseconds >> Int64(power - 2) & 3)
    }

    private static func upperBound(of bucket: Int) -> Duration {
        assert(0..<4 * 64 ~= bucket, "there is no such bucket")
        guard bucket >= 4 else { return .nanoseconds(bucket) }
        let (power, quarter) = (bucket / 4 + 1, bucket % 4)
        guard power < 62 else { return .nanoseconds(Int64.max) }
        return .nanoseconds(Int64(4 + quarter + 1) << Int64(power - 2) - 1)
    }
}
