/// The search for an order that explains the operations of a part: Wing and Gong's, with Lowe's memory of what was tried.
///
/// The begins and ends are a list in their order. An operation whose begin comes before the first end can be the next one:
/// if the model accepts it, it is taken out of the list, and the search begins at the head again. If the first end is
/// reached, the operation that was taken last is put back, and the next one after it is tried.
struct Linearization<Model: SequentialModel> {
    typealias Entry = History<Model>.Entry

    /// `nil` if there is an order.
    private(set) var failure: Impasse?

    /// A begin or an end in the list; ends of operations without an outcome are not in it.
    private struct Node {
        let entry: Int
        let isBegin: Bool
        var previous: Int
        var next: Int
    }

    /// The operations that were taken. Those with an outcome are counted in the order of their ends: all of the first ones,
    /// and few others, because these overlap.
    private struct Taken: Hashable {
        var first = 0
        var others: [Int] = []
        var withoutOutcome: [Int] = []

        mutating func insert(_ rank: Int?, of entry: Int) {
            guard let rank else {
                withoutOutcome.insert(entry, at: withoutOutcome.firstIndex { $0 > entry } ?? withoutOutcome.endIndex)
                return
            }
            others.insert(rank, at: others.firstIndex { $0 > rank } ?? others.endIndex)
            let begun = others.enumerated().prefix { $0.element == first + $0.offset }.count
            others.removeFirst(begun)
            first += begun
        }
    }

    private struct Configuration: Hashable {
        let taken: Taken
        let state: Model
    }

    /// The head of the list, which is no begin or end; the list ends there, too.
    private static var head: Int { 0 }
    private var nodes: [Node] = []
    /// The place of the end of each operation in the list.
    private var ends: [Int?]
    /// The number of each operation in the order of the ends.
    private var ranks: [Int?]

    /// - Parameter entries: in the order of their begins.
    init(of entries: [Entry], from model: Model) {
        ends = Array(repeating: nil, count: entries.count)
        ranks = ends
        let moments =
            entries.indices.map { (number: entries[$0].begin.number, entry: $0, isBegin: true) }
            + entries.indices.compactMap { entry in
                entries[entry].end.map { (number: $0.moment.number, entry: entry, isBegin: false) }
            }
        nodes.append(Node(entry: -1, isBegin: false, previous: moments.count, next: moments.isEmpty ? 0 : 1))
        var rank = 0
        for (index, moment) in moments.sorted(by: { $0.number < $1.number }).enumerated() {
            let isLast = index == moments.count - 1
            nodes.append(
                Node(
                    entry: moment.entry, isBegin: moment.isBegin, previous: index,
                    next: isLast ? Self.head : index + 2))
            guard !moment.isBegin else { continue }
            ends[moment.entry] = index + 1
            ranks[moment.entry] = rank
            rank += 1
        }
        search(entries, model)
    }

    private mutating func search(_ entries: [Entry], _ model: Model) {
        var tried: Set<Configuration> = []
        var configuration = Configuration(taken: Taken(), state: model)
        var order: [(node: Int, before: Configuration)] = []
        var longest = Impasse()
        var place = nodes[Self.head].next
        // Behind the last end there is nothing that must have happened.
        var endsLeft = ranks.count { $0 != nil }
        while endsLeft > 0 {
            let node = nodes[place]
            if node.isBegin {
                if let next = taking(node.entry, entries[node.entry], from: configuration),
                    tried.insert(next).inserted
                {
                    order.append((place, configuration))
                    configuration = next
                    endsLeft -= ends[node.entry] == nil ? 0 : 1
                    unlink(place)
                    place = nodes[Self.head].next
                } else {
                    place = node.next
                }
                continue
            }
            if longest.unplaced.isEmpty || order.count > longest.order.count {
                longest = Impasse(
                    order: order.map { nodes[$0.node].entry }, unplaced: begun(before: place).filter { ends[$0] != nil }
                )
            }
            guard let last = order.popLast() else {
                failure = longest
                return
            }
            configuration = last.before
            endsLeft += ends[nodes[last.node].entry] == nil ? 0 : 1
            relink(last.node)
            place = nodes[last.node].next
        }
    }

    private func taking(_ index: Int, _ entry: Entry, from configuration: Configuration) -> Configuration? {
        var (state, taken) = (configuration.state, configuration.taken)
        if let outcome = entry.end?.outcome {
            guard state.accepts(outcome, of: entry.operation) else { return nil }
        } else {
            _ = state.perform(entry.operation)
        }
        taken.insert(ranks[index], of: index)
        return Configuration(taken: taken, state: state)
    }

    /// The operations in the list that begin before a place.
    private func begun(before place: Int) -> [Int] {
        var result: [Int] = []
        var node = nodes[Self.head].next
        while node != place {
            result.append(nodes[node].entry)
            node = nodes[node].next
        }
        return result
    }

    // MARK: The list

    /// Takes an operation out of the list, its begin and its end.
    private mutating func unlink(_ begin: Int) {
        take(begin)
        if let end = ends[nodes[begin].entry] { take(end) }
    }

    /// Puts an operation back to its places, if it was taken out last.
    private mutating func relink(_ begin: Int) {
        if let end = ends[nodes[begin].entry] { put(end) }
        put(begin)
    }

    private mutating func take(_ node: Int) {
        nodes[nodes[node].previous].next = nodes[node].next
        nodes[nodes[node].next].previous = nodes[node].previous
    }

    private mutating func put(_ node: Int) {
        nodes[nodes[node].previous].next = node
        nodes[nodes[node].next].previous = node
    }
}
