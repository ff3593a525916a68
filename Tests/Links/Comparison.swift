/// The differences between runs of a conversation over a real link and over a simulated one.
///
/// The results and errors of every run are the expected ones, in order. Each time, and each number that chance decides,
/// differs by at most the conversation's tolerance.
struct Comparison: CustomStringConvertible {
    private let name: String
    private var quantities: [Quantity] = []
    /// The sides of runs with unexpected results or errors.
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
                let (real, simulated) = (real.map(event), simulated.map(event))
                quantities.append(Quantity(time: "\(side): \(text)", real, simulated, of: conversation))
                guard real[0].count != nil else { continue }
                quantities.append(Quantity(count: text, real, simulated, of: conversation))
            }
        }
    }

    /// `true` if all quantities agree, within the tolerances.
    var isSame: Bool { others.isEmpty && quantities.allSatisfy(\.isSame) }

    /// The conversation, and below it its last event, its numbers, and all differences.
    var description: String {
        let last = quantities.filter { $0.unit == "s" }.max { $0.compared.real < $1.compared.real }
        let shown = quantities.filter { !$0.isSame || $0.unit.isEmpty || $0.name == last?.name }
        return (["\(isSame ? "same " : "OTHER") \(name)"] + others + shown.map(\.description))
            .joined(separator: "\n      ")
    }
}
