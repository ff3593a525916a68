internal import RunLoopCore
@_spi(Ports) internal import RunLoopSimulation

/// The chance that decides what networks and disks do: numbers from the simulation's seed, or the schedule of an
/// explored simulation.
///
/// Not locked: used only by the thread whose turn it is.
final class Chance {
    private let simulation: Simulation
    private var numbers: RunLoop.RandomNumbers

    init(_ simulation: Simulation) {
        self.simulation = simulation
        numbers = simulation.randomNumbers(for: "network")
    }

    /// Returns `true` once in `times` times.
    func once(in times: Int) -> Bool { number(in: 0...(times - 1)) == 0 }

    /// Returns `true` at a rate from 0 to 1.
    func happens(at rate: Double) -> Bool { rate > 0 && Double.random(in: 0..<1, using: &numbers) < rate }

    func number(in range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &numbers) }

    /// Returns the value of a random quantity: `drawn`, if the schedule of an explored simulation does not decide
    /// otherwise.
    ///
    /// - Parameters:
    ///   - drawn: the value that chance gives; any in the range by default.
    ///   - what: the event, for example `tears a file`.
    ///   - usual: the value without chance.
    func outcome(
        _ drawn: Int? = nil, on machine: String, _ what: @autoclosure () -> String, usual: Int,
        in range: ClosedRange<Int>
    ) -> Int {
        simulation.draw(machine, what(), usual: usual, in: range, drawn: drawn ?? number(in: range))
    }
}
