import Glibc
package import RunLoopSimulation
package import Testing

extension Simulation {
    /// Runs the loop until a condition holds: the world outside takes real time.
    package func settle(sourceLocation: SourceLocation = #_sourceLocation, until hasHappened: () -> Bool) {
        for _ in 0..<240_000 {
            advance(by: .zero)
            if hasHappened() { return }
            usleep(500)
        }
        Issue.record("it has not happened in two minutes", sourceLocation: sourceLocation)
    }
}
