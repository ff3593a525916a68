/// The search for an order that explains the operations of a part and keeps each client's own operations in the order
/// of the guarantees; the times of operations of different clients do not matter.
///
/// A read that the model accepts is taken at once: whatever may follow can follow after it as well. The search
/// therefore branches only with changes, including changes that leave the present state as it is, because later they
/// may not. It remembers the configurations that it has tried, as Lowe's does. Changes without an outcome are tried
/// last.
struct SessionOrder<Model: SequentialModel> {
    typealias Entry = History<Model>.Entry

    /// The reason why no order was found; `nil` if there is an order.
    private(set) var failure: Impasse?

    private struct Configuration: Hashable {
        var taken: [Bool]
        var state: Model
    }

    /// A configuration on the way.
    private struct Step {
        let configuration: Configuration
        /// The number of operations taken before this step.
        let count: Int
        /// The operations that may be tried next, in the order of their beginnings. Operations without an outcome come
        /// last, because they need not have happened.
        let open: [Int]
        var tried = 0
    }

    private let entries: [Entry]
    private let isRead: [Bool]
    /// The operations that must come before each operation.
    private let earlier: [[Int]]
    private var order: [Int] = []

    /// - Parameter entries: the operations, in the order of their beginnings.
    init(
        of entries: [Entry], from model: Model, keeping guarantees: SessionGuarantees,
        reads isRead: (Model.Operation) -> Bool
    ) {
        self.entries = entries
        let reads = entries.map { isRead($0.operation) }
        self.isRead = reads
        let ofClient = Dictionary(grouping: entries.indices) { entries[$0].client }
        earlier = entries.indices.map { second in
            ofClient[entries[second].client]!.filter { first in
                guard let end = entries[first].end, end.moment.number < entries[second].begin.number else {
                    return false
                }
                return guarantees.keepOrder(ofRead: reads[first], beforeRead: reads[second])
            }
        }
        search(from: model)
    }

    /// The number of configurations after which the search is given up.
    private static var mostSteps: Int { 100_000 }

    private mutating func search(from model: Model) {
        let ended = entries.indices.filter { entries[$0].end != nil }
        let start = Configuration(taken: Array(repeating: false, count: entries.count), state: model)
        var steps = [step(to: start, count: 0)]
        var known: Set<Configuration> = []
        while let last = steps.last {
            if known.count >= Self.mostSteps {
                failure?.isGivenUp = true
                return
            }
            if ended.allSatisfy({ last.configuration.taken[$0] }) {
                failure = nil
                return
            }
            guard last.tried < last.open.count else {
                if failure.map({ order.count > $0.order.count }) ?? true {
                    failure = Impasse(order: order, unplaced: last.open.filter { entries[$0].end != nil })
                }
                order.removeSubrange(last.count...)
                steps.removeLast()
                continue
            }
            steps[steps.count - 1].tried += 1
            let (choice, count) = (last.open[last.tried], order.count)
            guard let next = taking(choice, from: last.configuration) else { continue }
            order.append(choice)
            let step = step(to: next, count: count)
            if known.insert(step.configuration).inserted {
                steps.append(step)
            } else {
                order.removeSubrange(count...)
            }
        }
    }

    /// Takes all reads that are accepted. Taking one does not enable operations that began before it.
    private mutating func step(to configuration: Configuration, count: Int) -> Step {
        var configuration = configuration
        var open: [Int] = []
        for index in entries.indices where !configuration.taken[index] {
            guard earlier[index].allSatisfy({ configuration.taken[$0] }) else { continue }
            if isRead[index], entries[index].end != nil, let next = taking(index, from: configuration),
                next.state == configuration.state
            {
                configuration = next
                order.append(index)
            } else if entries[index].end != nil || !isRead[index] {
                open.append(index)
            }
        }
        let choices = open.filter { entries[$0].end != nil } + open.filter { entries[$0].end == nil }
        return Step(configuration: configuration, count: count, open: choices)
    }

    private func taking(_ index: Int, from configuration: Configuration) -> Configuration? {
        var next = configuration
        if let outcome = entries[index].end?.outcome {
            guard next.state.accepts(outcome, of: entries[index].operation) else { return nil }
        } else {
            _ = next.state.perform(entries[index].operation)
        }
        next.taken[index] = true
        return next
    }
}
