import RunLoopExploration
import RunLoopSimulation

/// A small program with a planted bug, and its mended twin.
///
/// In the usual order of tasks and threads the bug does not show, unless it takes a moment that the seed chooses. The twin
/// is right whatever it leaves to the simulation to choose, and in every order that is legal: the ready tasks of a loop, and
/// the threads at the ends of callbacks, may come in any; the posts of one thread to one loop, timers of one loop with equal
/// dates, and the bytes of a connection may not.
struct Program: Sendable {
    /// In lower case, with hyphens.
    let name: String
    /// What is wrong, in a sentence.
    let bug: String
    /// What counts as a fault besides a violation.
    var limits = Exploration.Limits()
    /// Whether the bug ends the process, so that the program is explored in another one.
    var traps = false
    /// Runs it in a simulation that is fresh; throws a `Violation` when what must hold does not.
    let run: @Sendable (_ simulation: Simulation, _ isMended: Bool) throws -> Void

    // The halves are reported each for itself.
    static let firstHalf = waiting + checkThenAct + order + time + hosts
    static let secondHalf = faults + moments + sharing + threads + unended
    static let all = firstHalf + secondHalf
}

/// What must hold does not.
struct Violation: Error, CustomStringConvertible {
    let description: String
}

/// - Parameter violation: says what is wrong otherwise.
func check(_ condition: Bool, _ violation: @autoclosure () -> String) throws(Violation) {
    if !condition { throw Violation(description: violation()) }
}
