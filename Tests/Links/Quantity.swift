/// A time or a number, in all runs.
struct Quantity: CustomStringConvertible {
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
