internal import RunLoopCore
internal import RunLoopSimulation

/// What simulated machines, disks and links ask of their simulation: time, chance, and that something is written down.
///
/// It is not locked: only the thread whose turn it is gets here.
final class Surroundings {
    let simulation: Simulation
    private var numbers: RunLoop.RandomNumbers

    init(_ simulation: Simulation) {
        self.simulation = simulation
        numbers = simulation.randomNumbers(for: "network")
    }

    var now: RunLoop.Instant { simulation.now }

    /// Has something happen on a machine at a date, or as soon as the running thread rests.
    ///
    /// - Parameters:
    ///   - what: says what happens, for example `bytes arrive`.
    ///   - sender: the machine it comes from. What comes from one to another at the same time comes in order.
    @discardableResult
    func schedule(
        at date: RunLoop.Instant, _ what: StaticString, from sender: String? = nil, on machine: String,
        _ action: @escaping () -> Void
    ) -> Appointment {
        simulation.schedule(at: date, what, from: sender, on: machine, action)
    }

    // MARK: Chance

    /// True once in so many times.
    func chance(of times: Int) -> Bool { random(in: 0...(times - 1)) == 0 }

    /// True at this rate, from 0 to 1.
    func chance(at rate: Double) -> Bool { rate > 0 && Double.random(in: 0..<1, using: &numbers) < rate }

    func random(in range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &numbers) }

    /// What comes of chance, unless the simulation is explored and its schedule says otherwise.
    ///
    /// - Parameters:
    ///   - drawn: what chance says.
    ///   - machine: where.
    ///   - what: says what is done, for example `tears a file`.
    ///   - usual: what comes without chance.
    ///   - range: what may come.
    func outcome(
        _ drawn: Int, on machine: String, _ what: @autoclosure () -> String, usual: Int, in range: ClosedRange<Int>
    ) -> Int {
        simulation.draw(machine, what(), usual: usual, in: range, drawn: drawn)
    }

    // MARK: What happens

    func note(_ machine: String, _ text: String) {
        simulation.note(text, of: machine)
    }

    /// Notes what has come from one machine to another, or has not.
    func note(_ message: HostMessage, from sender: String, to receiver: String) {
        simulation.note(message, from: sender, to: receiver)
    }
}
