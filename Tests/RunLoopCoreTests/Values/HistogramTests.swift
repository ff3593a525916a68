import RunLoopCore
import RunLoopSimulation
import Testing

@Suite("Histograms")
struct HistogramTests {
    @Test("quantiles are rounded up from the recorded durations by at most a quarter", arguments: 0..<8)
    func quantiles(seed: UInt64) {
        var state = seed &* 6_364_136_223_846_793_005 &+ 1
        var histogram = Histogram()
        var durations: [Int64] = []
        for _ in 0..<1000 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let duration = Int64(state >> 33) >> Int64(state % 31)
            durations.append(duration)
            histogram.record(.nanoseconds(duration))
        }
        durations.sort()
        for share in [0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1] {
            let exact = durations[max(1, Int((share * 1000).rounded(.up))) - 1]
            let found = histogram.quantile(share)
            #expect(found >= .nanoseconds(exact), "seed \(seed), share \(share)")
            #expect(found <= .nanoseconds(exact + exact / 4), "seed \(seed), share \(share)")
        }
        #expect(histogram.count == 1000)
        #expect(histogram.total == .nanoseconds(durations.reduce(0, +)))
        #expect(histogram.maximum == .nanoseconds(durations.last!))
        #expect(histogram.buckets.map(\.count).reduce(0, +) == 1000)
        #expect(histogram.buckets.map(\.upperBound) == histogram.buckets.map(\.upperBound).sorted())
    }

    @Test("an empty histogram and a negative duration give zero; a duration longer than any clock saturates")
    func edges() {
        var histogram = Histogram()
        #expect(histogram.quantile(0.5) == .zero)
        histogram.record(.seconds(-1))
        #expect(histogram.quantile(1) == .zero && histogram.count == 1)
        histogram.record(.seconds(1 << 60))
        #expect(histogram.maximum == .nanoseconds(Int64.max))
        #expect(histogram.quantile(1) == histogram.maximum)
        histogram.record(.seconds(1 << 60))
        #expect(histogram.total == .nanoseconds(Int64.max))
    }

    @Test("histograms add up, and give the durations recorded since an earlier state")
    func sums() {
        var (first, second) = (Histogram(), Histogram())
        first.record(.milliseconds(1))
        let earlier = first
        first.record(.milliseconds(4))
        second.record(.milliseconds(2))
        #expect(first.since(earlier).quantile(0.5) >= .milliseconds(4))
        #expect(first.since(earlier).count == 1)
        second += first
        #expect(second.count == 3)
        #expect(second.total == .milliseconds(7))
        #expect(second.maximum == .milliseconds(4))
    }

    @Test("the loop records how late each deadline was served, counted from its date")
    func lateness() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.perform(afterDelay: .seconds(1)) { simulation.spend(.seconds(3)) }
            loop.perform(afterDelay: .seconds(2)) {}
            loop.perform(afterDelay: .seconds(10)) {}
            loop.run(in: .default)
            let lateness = loop.statistics.lateness
            #expect(lateness.count == 3)
            #expect(lateness.maximum == .seconds(2))
            #expect(lateness.total == .seconds(2))
            #expect(lateness.quantile(0.5) == .zero)
        }
    }
}
