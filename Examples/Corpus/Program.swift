import RunLoopExploration
import RunLoopSimulation

/// A small program with a planted bug, and its mended twin.
///
/// In the usual order of tasks and threads the bug does not show, unless it depends on a moment that the seed chooses.
/// The twin is right for all choices of the simulation, and in every legal order. The ready tasks of a loop, and the
/// threads at the ends of callbacks, may come in any order. The posts of one thread to one loop, timers of one loop
/// with equal dates, and the bytes of a connection may not.
struct Program: Sendable {
    /// The name, in lower case with hyphens.
    let name: String
    /// The bug, in a sentence.
    let bug: String
    /// The limits of exploration: faults besides a violation.
    var limits = Exploration.Limits()
    /// `true` if the bug ends the process, so that the program is explored in another process.
    var traps = false
    /// `true` if the program has a simulated network.
    var hasNetwork = false
    /// Runs the program in a fresh simulation; throws a `Violation` when a condition does not hold.
    let run: @Sendable (_ simulation: Simulation, _ isMended: Bool) throws -> Void

    // The parts are reported separately.
    static let firstPart = waiting + checkThenAct + order + time + hosts
    static let secondPart = faults + moments + sharing + threads + unended
    static let thirdPart = objects + lockFree + replicas + crashes + release
    static let parts: [(name: String, programs: [Program])] = [
        ("written before the strategies", firstPart), ("written after", secondPart),
        ("with histories, and others", thirdPart),
    ]
    static let all = firstPart + secondPart + thirdPart
}

/// A condition that does not hold.
struct Violation: Error, CustomStringConvertible {
    let description: String
}

/// - Parameter violation: the message if the condition does not hold.
func check(_ condition: Bool, _ violation: @autoclosure () -> String) throws(Violation) {
    if !condition { throw Violation(description: violation()) }
}
