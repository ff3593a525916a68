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

/// A time or a number, in all runs.
private struct Quantity: CustomStringConvertible {
    let name: String
    let real: [Double]
    let simulated: [Double]
    /// The most by which the medians may differ.
    let tolerance: Double
    let unit: String

    static func times(
        of name: String, _ real: [Event], _ simulated: [Event], _ tolerance: Conversation.Tolerance
    ) -> [Quantity] {
        let (real, simulated) = (real.map { $0.time / .seconds(1) }, simulated.map { $0.time / .seconds(1) })
        let allowed = tolerance.time / .seconds(1) + tolerance.share * median(real)
        return [Quantity(name: name, real: real, simulated: simulated, tolerance: allowed, unit: "s")]
    }

    /// Nothing for an event without a number.
    static func counts(of name: String, _ real: [Event], _ simulated: [Event], _ tolerance: Int) -> [Quantity] {
        let (real, simulated) = (real.compactMap(\.count), simulated.compactMap(\.count))
        guard !real.isEmpty else { return [] }
        return [
            Quantity(
                name: name, real: real.map(Double.init), simulated: simulated.map(Double.init),
                tolerance: Double(tolerance), unit: "")
        ]
    }

    var middle: (real: Double, simulated: Double) { (Self.median(real), Self.median(simulated)) }
    var isSame: Bool { abs(middle.real - middle.simulated) <= tolerance }

    private static func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

    /// For example `client: end: real 0.215 s (0.210 to 0.217), simulated 0.2 s (0.2 to 0.2), tolerance 0.04 s`.
    var description: String {
        func text(_ value: Double) -> String { "\((value * 1_000).rounded() / 1_000)\(unit.isEmpty ? "" : " \(unit)")" }
        func range(_ values: [Double]) -> String { "(\(text(values.min()!)) to \(text(values.max()!)))" }
        return "\(name): real \(text(middle.real)) \(range(real)), simulated \(text(middle.simulated)) "
            + "\(range(simulated)), tolerance \(text(tolerance))\(isSame ? "" : ": DIFFERS")"
    }
}
