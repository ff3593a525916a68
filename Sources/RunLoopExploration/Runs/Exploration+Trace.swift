public import RunLoopSimulation

extension Exploration {
    /// Runs a program once, with a given schedule, and keeps all its events. The program runs on the calling thread.
    ///
    /// - Parameters:
    ///   - token: the schedule; the usual one if it has no departures.
    ///   - body: the program; see ``run(_:)``.
    @available(*, noasync, message: "a simulation runs on one thread; call it from a synchronous function")
    public func trace(_ token: ScheduleToken, _ body: (Simulation) throws -> Void) -> SimulationTrace {
        withoutActuallyEscaping(body) { body in
            let run = LocalRunner(portfolio: portfolio, limits: limits, body: body).replay(token, .trace())
            return SimulationTrace(run.trace, of: token, run.fault)
        }
    }
}
