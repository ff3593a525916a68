/// The search for an order that explains the operations of a part: Wing and Gong's, with Lowe's memory of tried
/// configurations.
///
/// An operation that begins before the first end of the remaining ones can be the next one, if the model accepts it.
///
/// An operation without an outcome may have happened or not. Orders with fewer of them are tried first. An order that
/// reaches a place and a state with more of them than an earlier one is not followed: it can only continue as the
/// earlier one does.
struct Linearization<Model: SequentialModel> {
    typealias Entry = History<Model>.Entry

    /// The reason why no order was found; `nil` if there is an order.
    private(set) var failure: Impasse?

    /// The operations with an outcome that were taken, counted in the order of their ends: all up to a number, and a
    /// few others, because only overlapping ones can be out of order.
    private struct Taken: Hashable {
        var first = 0
        var others: [Int] = []

        mutating func insert(_ rank: Int) {
            others.insert(rank, at: others.firstIndex { $0 > rank } ?? others.endIndex)
            let begun = others.enumerated().prefix { $0.element == first + $0.offset }.count
            others.removeFirst(begun)
            first += begun
        }

        var count: Int { first + others.count }
    }

    private struct Configuration: Hashable {
        var taken = Taken()
        var state: Model
    }

    /// A configuration that was reached, and the way to it.
    private struct Step {
        let configuration: Configuration
        /// The operations without an outcome that were taken, sorted.
        let open: [Int]
        /// The operation that was taken last, and the step before it.
        let last: (entry: Int, step: Int)?
    }

    private let entries: [Entry]
    /// The operations with an outcome, in the order of their ends.
    private let ended: [Int]
    /// The number of each operation in the order of `ended`.
    private let ranks: [Int?]
    /// The operations that have begun and not ended before each end, in the order of their beginnings.
    private let candidates: [[Int]]
    /// The operations without an outcome, in the order of their beginnings.
    private let open: [Int]

    private var steps: [Step]
    /// The sets of operations without an outcome with which a configuration was reached.
    private var known: [Configuration: [[Int]]] = [:]
    private var longest = (count: -1, impasse: Impasse())
    private let mostSteps: Int

    /// - Parameters:
    ///   - entries: the operations, in the order of their beginnings.
    ///   - most: the number of configurations, besides one for each operation, after which the search is given up.
    init(of entries: [Entry], from model: Model, atMost most: Int = 250_000) {
        self.entries = entries
        mostSteps = entries.count + most
        open = entries.indices.filter { entries[$0].end == nil }
        ended = entries.indices.filter { entries[$0].end != nil }.sorted {
            entries[$0].end!.moment.number < entries[$1].end!.moment.number
        }
        var ranks: [Int?] = Array(repeating: nil, count: entries.count)
        for (rank, entry) in ended.enumerated() { ranks[entry] = rank }
        self.ranks = ranks
        candidates = Self.overlaps(entries, ended)
        steps = [Step(configuration: Configuration(state: model), open: [], last: nil)]
        if !search() { failure = longest.impasse }
    }

    private static func overlaps(_ entries: [Entry], _ ended: [Int]) -> [[Int]] {
        var (next, living) = (0, [Int]())
        return ended.map { entry in
            let end = entries[entry].end!.moment.number
            while next < entries.count, entries[next].begin.number < end {
                if entries[next].end != nil { living.append(next) }
                next += 1
            }
            defer { living.removeAll { $0 == entry } }
            return living
        }
    }

    // MARK: The search

    private var isGivenUp: Bool { steps.count >= mostSteps }

    /// - Returns: `true` if there is an order.
    private mutating func search() -> Bool {
        if follow(0) { return true }
        var latest = 0..<steps.count
        while !isGivenUp, !latest.isEmpty {
            // All orders with one more operation that has no outcome. The latest steps have come furthest.
            for index in latest.reversed() {
                let taken = steps[index].configuration.taken
                let end = entries[ended[taken.first]].end!.moment.number
                for entry in open.prefix(while: { entries[$0].begin.number < end }) {
                    if let step = take(entry, after: index), follow(step) { return true }
                }
            }
            latest = latest.upperBound..<steps.count
        }
        longest.impasse.isGivenUp = isGivenUp
        return false
    }

    /// Follows a step with the operations that have an outcome.
    ///
    /// - Returns: `true` if all of them could be taken.
    private mutating func follow(_ start: Int) -> Bool {
        var way = [(step: start, tried: 0)]
        while !isGivenUp, let (index, tried) = way.last {
            let taken = steps[index].configuration.taken
            if taken.first == ended.count { return true }
            let candidates = candidates[taken.first]
            guard tried < candidates.count else {
                if taken.count > longest.count {
                    let unplaced = candidates.filter { !taken.others.contains(ranks[$0]!) }
                    longest = (taken.count, Impasse(order: order(to: index), unplaced: unplaced))
                }
                way.removeLast()
                continue
            }
            way[way.count - 1].tried += 1
            if let next = take(candidates[tried], after: index) { way.append((next, 0)) }
        }
        return false
    }

    /// Takes an operation after a step.
    ///
    /// - Returns: the next step; `nil` if the model does not accept it, or if the step leads to nothing new.
    private mutating func take(_ index: Int, after step: Int) -> Int? {
        let entry = entries[index]
        var (configuration, open) = (steps[step].configuration, steps[step].open)
        if let rank = ranks[index] {
            guard !configuration.taken.others.contains(rank),
                configuration.state.accepts(entry.end!.outcome, of: entry.operation)
            else { return nil }
            configuration.taken.insert(rank)
        } else {
            guard !open.contains(index) else { return nil }
            _ = configuration.state.perform(entry.operation)
            open.insert(index, at: open.firstIndex { $0 > index } ?? open.endIndex)
        }
        guard known[configuration]?.contains(where: { open.isSuperset(of: $0) }) != true else { return nil }
        known[configuration, default: []].append(open)
        steps.append(Step(configuration: configuration, open: open, last: (index, step)))
        return steps.count - 1
    }

    private func order(to step: Int) -> [Int] {
        var (order, step) = ([Int](), step)
        while let last = steps[step].last {
            order.append(last.entry)
            step = last.step
        }
        return order.reversed()
    }
}

extension [Int] {
    /// Returns `true` if the array has all elements of another one; both are sorted.
    fileprivate func isSuperset(of other: [Int]) -> Bool {
        guard other.count <= count else { return false }
        var rest = self[...]
        return other.allSatisfy { element in
            rest = rest.drop { $0 < element }
            return rest.popFirst() == element
        }
    }
}
