/// A time or a number, in all runs of a conversation over both links.
struct Quantity: CustomStringConvertible {
    let name: String
    /// The unit: `s` for a time.
    let unit: String
    private let real: [Double]
    private let simulated: [Double]
    /// The compared values.
    let compared: (real: Double, simulated: Double)
    private let tolerance: Double

    init(time name: String, _ real: [Event], _ simulated: [Event], of conversation: Conversation) {
        (self.name, unit) = (name, "s")
        self.real = real.map { $0.time / .seconds(1) }
        self.simulated = simulated.map { $0.time / .seconds(1) }
        compared = Self.compared(self.real, self.simulated, conversation.isRandom)
        tolerance = conversation.tolerance.time / .seconds(1) + conversation.tolerance.share * compared.real
    }

    init(count name: String, _ real: [Event], _ simulated: [Event], of conversation: Conversation) {
        (self.name, unit) = (name, "")
        self.real = real.map { Double($0.count!) }
        self.simulated = simulated.map { Double($0.count!) }
        compared = Self.compared(self.real, self.simulated, conversation.isRandom)
        tolerance = Double(conversation.countTolerance)
    }

    /// Returns the medians if chance plays a part, and otherwise the minima: the other work of the machine only makes
    /// runs late.
    private static func compared(_ real: [Double], _ simulated: [Double], _ isRandom: Bool) -> (Double, Double) {
        func value(_ values: [Double]) -> Double { isRandom ? values.sorted()[values.count / 2] : values.min()! }
        return (value(real), value(simulated))
    }

    var isSame: Bool { abs(compared.real - compared.simulated) <= tolerance }

    /// For example `client: end: real 0.21 s (0.21 s to 0.217 s), simulated 0.2 s (0.2 s to 0.2 s), tolerance 0.04 s`.
    var description: String {
        func text(_ value: Double) -> String { "\((value * 1_000).rounded() / 1_000)\(unit.isEmpty ? "" : " \(unit)")" }
        func range(_ values: [Double]) -> String { "(\(text(values.min()!)) to \(text(values.max()!)))" }
        return "\(name): real \(text(compared.real)) \(range(real)), simulated \(text(compared.simulated)) "
            + "\(range(simulated)), tolerance \(text(tolerance))\(isSame ? "" : ": DIFFERS")"
    }
}
