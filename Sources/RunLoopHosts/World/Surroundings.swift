internal import RunLoopCore
internal import RunLoopSimulation

/// The services that simulated machines, disks and links use: time, chance, and a record of events.
///
/// It is not locked: only the thread whose turn it is uses it.
final class Surroundings {
    let simulation: Simulation
    private var numbers: RunLoop.RandomNumbers

    init(_ simulation: Simulation) {
        self.simulation = simulation
        numbers = simulation.randomNumbers(for: "network")
    }

    var now: RunLoop.Instant { simulation.now }

    /// Schedules an event on a machine at a date, or as soon as the running thread rests.
    ///
    /// - Parameters:
    ///   - what: the event, for example `bytes arrive`.
    ///   - sender: the machine it comes from. Simultaneous events from one machine to another come in order.
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

    /// The value of a random quantity, unless the simulation is explored and its schedule says otherwise.
    ///
    /// - Parameters:
    ///   - drawn: the value that chance gives.
    ///   - machine: the place.
    ///   - what: the event, for example `tears a file`.
    ///   - usual: the value without chance.
    ///   - range: the possible values.
    func outcome(
        _ drawn: Int, on machine: String, _ what: @autoclosure () -> String, usual: Int, in range: ClosedRange<Int>
    ) -> Int {
        simulation.draw(machine, what(), usual: usual, in: range, drawn: drawn)
    }

    // MARK: Events

    func note(_ machine: String, _ text: String) {
        simulation.note(text, of: machine)
    }

    /// Notes a message that has or has not come from one machine to another.
    func note(_ message: HostMessage, from sender: String, to receiver: String) {
        simulation.note(message, from: sender, to: receiver)
    }
}
