@_spi(Ports) internal import RunLoopSimulation

/// The rows of two runs side by side.
enum Alignment {
    /// The parts of an event that are equal in both runs if it happens in both.
    private struct Key: Hashable {
        let lane: String
        let thread: String?
        let sender: String?
        let words: String

        init(_ event: TracedEvent) {
            (lane, thread, sender) = (event.lane, event.thread, event.sender)
            // A step that is a departure is the same step.
            words = String(event.words.prefix { $0 != "←" }.reversed().drop { $0 == " " }.reversed())
        }
    }

    /// The largest number of differing rows, with which a comparison takes a few seconds.
    private static let mostCompared = 3000

    /// Pairs the rows of two runs: equal events are side by side, and others stand alone.
    ///
    /// - Returns: the numbers of the rows in both runs. O(n·d) for n rows, d of which differ.
    static func pairs(of left: [Rows.Row], _ right: [Rows.Row]) -> [[Int?]] {
        let (one, other) = (left.map { Key($0.event) }, right.map { Key($0.event) })
        let same = zip(one, other).prefix { $0 == $1 }.count
        let isLong = one.count + other.count - 2 * same > mostCompared
        let rest =
            isLong
            ? merge(left.dropFirst(same), right.dropFirst(same)) : compare(one.dropFirst(same), other.dropFirst(same))
        return (0..<same).map { [$0, $0] } + rest
    }

    private static func compare(_ left: ArraySlice<Key>, _ right: ArraySlice<Key>) -> [[Int?]] {
        let difference = Array(right).difference(from: Array(left))
        var (removed, added) = (Set<Int>(), Set<Int>())
        for change in difference {
            switch change {
            case .remove(let offset, _, _): removed.insert(left.startIndex + offset)
            case .insert(let offset, _, _): added.insert(right.startIndex + offset)
            }
        }
        var (pairs, one, other) = ([[Int?]](), left.startIndex, right.startIndex)
        while one < left.endIndex || other < right.endIndex {
            let (isRemoved, isAdded) = (removed.contains(one), added.contains(other))
            pairs.append(isRemoved ? [one, nil] : isAdded ? [nil, other] : [one, other])
            if isRemoved || !isAdded { one += 1 }
            if !isRemoved { other += 1 }
        }
        return pairs
    }

    /// Orders the rows of both runs by time.
    private static func merge(_ left: ArraySlice<Rows.Row>, _ right: ArraySlice<Rows.Row>) -> [[Int?]] {
        var (pairs, one, other) = ([[Int?]](), left.startIndex, right.startIndex)
        while one < left.endIndex || other < right.endIndex {
            let isFirst =
                one < left.endIndex && (other == right.endIndex || left[one].event.date <= right[other].event.date)
            pairs.append(isFirst ? [one, nil] : [nil, other])
            if isFirst { one += 1 } else { other += 1 }
        }
        return pairs
    }
}
