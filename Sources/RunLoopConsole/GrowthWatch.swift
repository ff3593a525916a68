internal import RunLoopKit

/// Finds lines of the program whose items only become more.
///
/// In a program that also drops its timers the number of items rises and falls. In a leak it only rises.
struct GrowthWatch {
    /// The number of rises that count as growth.
    static let rises = 3

    struct Line: Hashable {
        let kind: RunLoop.ItemKind
        let origin: RunLoop.Origin
    }

    private struct History {
        var count: Int
        var rises = 0
        /// The number of items at the beginning.
        var first: Int
        var begin: RunLoop.Instant
    }

    private var histories: [Line: History] = [:]
    /// The time of the last look.
    private var last: RunLoop.Instant?

    /// - Returns: the growing lines.
    mutating func look(_ counts: [Line: Int], at now: RunLoop.Instant) -> [Line: (items: Int, time: Duration)] {
        var next: [Line: History] = [:]
        var growing: [Line: (items: Int, time: Duration)] = [:]
        for (line, count) in counts {
            // At the first look, the age of a line's items is unknown; later, a new line had none before.
            let new =
                last.map { History(count: 0, first: 0, begin: $0) } ?? History(count: count, first: count, begin: now)
            var history = histories[line] ?? new
            if count < history.count { history = History(count: count, first: count, begin: now) }
            if count > history.count { history.rises += 1 }
            if history.rises == 0 { history.begin = now }
            history.count = count
            next[line] = history
            if history.rises >= Self.rises { growing[line] = (count - history.first, now - history.begin) }
        }
        (histories, last) = (next, now)
        return growing
    }
}
