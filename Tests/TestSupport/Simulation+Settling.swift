import Glibc
package import RunLoopSimulation

extension Simulation {
    /// Lets the loop do what there is to do until something has happened: the world outside takes real time.
    package func settle(until hasHappened: () -> Bool) {
        for _ in 0..<20_000 {
            advance(by: .zero)
            if hasHappened() { return }
            usleep(500)
        }
    }
}
