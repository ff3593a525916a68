/// The differences between runs of a conversation over a real link and over a simulated one.
///
/// The results and errors of every run are the expected ones, in their order. Each time, and each number that chance
/// decides, is compared by its median over the runs, because chance and the other work of the machine make some runs late.
struct Comparison: CustomStringConvertible {
    private let name: String
    private var quantities: [Quantity] = []
    /// The sides of runs whose results or errors are not the expected ones.
    private let others: [String]

    init(of conversation: Conversation, real: [[Event]], simulated: [[Event]]) {
        name = conversation.name
        let runs = real.map { ("real", $0) } + simulated.map { ("simulated", $0) }
        others = runs.flatMap { kind, run in
            Side.Name.allCases.compactMap { side in
                let texts = run.filter { $0.side == side }.map(\.text)
                return texts == conversation.expected[side] ? nil : "in a \(kind) run, \(side): \(texts)"
            }
        }
        guard others.isEmpty else { return }
        for side in Side.Name.allCases {
            for (index, text) in conversation.expected[side]!.enumerated() {
                func event(of run: [Event]) -> Event { run.filter { $0.side == side }[index] }
                let pair = (real: real.map(event), simulated: simulated.map(event))
                quantities += Quantity.times(of: "\(side): \(text)", pair.real, pair.simulated, conversation.tolerance)
                quantities += Quantity.counts(of: text, pair.real, pair.simulated, conversation.countTolerance)
            }
        }
    }

    /// Whether all is the same, within the tolerances.
    var isSame: Bool { others.isEmpty && quantities.allSatisfy(\.isSame) }

    /// The conversation, and below it its last event, its numbers, and all that differs.
    var description: String {
        let last = quantities.filter { $0.unit == "s" }.max { $0.middle.real < $1.middle.real }
        let shown = quantities.filter { !$0.isSame || $0.unit.isEmpty || $0.name == last?.name }
        return (["\(isSame ? "same " : "OTHER") \(name)"] + others + shown.map(\.description))
            .joined(separator: "\n      ")
    }
}
