internal import RunLoopKit

/// Finds lines of the program whose items become more and never less.
///
/// A program that also drops its timers has a number that rises and falls. The number of a leak only rises.
struct GrowthWatch {
    /// How often a number must have risen.
    static let rises = 3

    struct Line: Hashable {
        let kind: RunLoop.ItemKind
        let origin: RunLoop.Origin
    }

    private struct History {
        var count: Int
        var rises = 0
        /// The number of items at the beginning, and when that was.
        var first: Int
        var begin: RunLoop.Instant
    }

    private var histories: [Line: History] = [:]
    /// When it last looked.
    private var last: RunLoop.Instant?

    /// - Returns: the lines that grow.
    mutating func look(_ counts: [Line: Int], at now: RunLoop.Instant) -> [Line: (items: Int, time: Duration)] {
        var next: [Line: History] = [:]
        var growing: [Line: (items: Int, time: Duration)] = [:]
        for (line, count) in counts {
            // At the first look, nobody knows since when a line has had its items; later, a new line had none before.
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
