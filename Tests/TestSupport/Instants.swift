package import RunLoopKit

/// Returns the instant a number of seconds after the start of a simulation.
package func seconds(_ seconds: Double) -> RunLoop.Instant {
    ns(0) + .seconds(seconds)
}

/// Returns the instant a number of milliseconds after the start of a simulation.
package func ms(_ milliseconds: Int64) -> RunLoop.Instant {
    RunLoop.Instant(nanoseconds: milliseconds * 1_000_000)
}

/// Returns the instant a number of nanoseconds after the start of a simulation.
package func ns(_ nanoseconds: Int64) -> RunLoop.Instant {
    RunLoop.Instant(nanoseconds: nanoseconds)
}

extension RunLoop.Instant {
    /// Whole milliseconds since the start of the simulation.
    package var ms: Int64 { nanoseconds / 1_000_000 }

    /// The milliseconds as a word of a log.
    package var word: String { "\(ms)" }
}
