extension Flight {
    /// A call of a timer that came late, and the calls that were under way after its date.
    public struct Delay: Sendable, Hashable {
        /// The late call.
        public let call: Call
        /// The calls that were made or still under way between the date of the late call and its start: at most the 20
        /// longest, the longest first. Calls that contain others are among them. If there are none, the loop ran in
        /// other modes, or its thread had no processor.
        public let causes: [Call]
    }

    /// Returns the calls of timers that came late, the latest first. O(calls × `count`).
    ///
    /// - Parameters:
    ///   - threshold: the least lateness that counts.
    ///   - count: the most calls to return. An overloaded loop has thousands of them, each delaying the next ones.
    public func delays(of threshold: Duration, atMost count: Int = 20) -> [Delay] {
        let calls = calls
        let late = calls.indices.filter { calls[$0].lateness.map { $0 >= threshold && $0 > .zero } ?? false }
        let latest = late.ordered { (calls[$0].lateness!, $1) > (calls[$1].lateness!, $0) }.prefix(max(0, count))
        return latest.map { index in
            let call = calls[index]
            let date = call.begin - call.lateness!
            var causes: [Call] = []
            for earlier in calls[..<index].reversed() {
                let end = earlier.duration.map { earlier.begin + $0 } ?? .distantFuture
                if end > date { causes.append(earlier) }
                // The calls before it had ended, too.
                if earlier.depth == 0, end <= date { break }
            }
            causes = causes.ordered { ($0.duration ?? .zero) > ($1.duration ?? .zero) }
            return Delay(call: call, causes: Array(causes.prefix(20)))
        }
    }

    /// The calls that were under way when the flight ended, the innermost last. If the process has ended, it ended in
    /// these calls.
    public var unfinished: [Call] {
        var open: [Call] = []
        for call in calls where call.duration == nil {
            while let last = open.last, last.depth >= call.depth { open.removeLast() }
            open.append(call)
        }
        return open
    }
}
