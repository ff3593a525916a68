internal import CInterposition
internal import RunLoopCore
public import RunLoopSimulation

extension Simulation {
    /// Makes Swift's default executor and the main actor parts of the simulation.
    ///
    /// Tasks that prefer no executor, and actors that name none, run on Swift's default executor: on threads that the
    /// simulation does not know, so that its time may pass them. Libraries start such tasks, as `debounce` of
    /// swift-async-algorithms does. From now on they run on a thread of the simulation, `default executor`, if they are
    /// started or resumed by a thread of the simulation. Their order is the same in every run. The main actor is then
    /// that of the simulation's main loop: its jobs run there, in the common modes, and `MainActor.assumeIsolated`
    /// holds in its handlers. The process of a simulated host has a `default executor` of its own, and its main loop is
    /// that of the main actor for its code. Properties of the main actor are shared by all, as other static variables
    /// are.
    ///
    /// ```swift
    /// withSimulation { simulation in
    ///     simulation.captureExecutors()
    ///     let clock = simulation.loop.clock
    ///     simulation.loop.task { for await text in typed.debounce(for: .seconds(1), clock: clock) { … } }
    ///     simulation.advance(by: .seconds(10))
    /// }
    /// ```
    ///
    /// Threads outside of the simulation are served as before, so tests may run in parallel. A task from outside that
    /// is resumed by a thread of the simulation continues inside, until it waits for something else from outside.
    ///
    /// From now on the simulation also answers its threads' calls to the C library for times, sleeps and random numbers,
    /// and with them `ContinuousClock`, `Task.sleep`, `Date()`, `UUID()` and others: see <doc:UnmodifiedCode>. Where it cannot, an
    /// escape says so.
    ///
    /// In an exploration, a task that calls an actor of the default executor, or returns from it, may be overtaken by
    /// others, as on several threads; elsewhere it continues at once if the actor is idle.
    ///
    /// The call replaces the executors of the process, once and for all, through an interface of the Swift runtime that
    /// is not public. It was tried with Swift 6.3.1 on Linux. If the runtime does not take the replacement, the call
    /// traps.
    ///
    /// With a width, jobs run on so many threads as on a pool, the most urgent first. A job that blocks its thread, in a
    /// `sleep`, a semaphore or a condition, holds it. If all threads are blocked and nobody will wake one, the jobs that
    /// wait are among the simulation's `waits`, and so are the tasks that block: an exploration reports a deadlock. A
    /// thread that is still blocked at the end of the simulation is ended there, and runs nothing more of the program.
    ///
    /// ```swift
    /// simulation.captureExecutors(width: 3)  // As a CI machine with three processors has.
    /// ```
    ///
    /// - Parameter width: the number of threads for the default executor, of the simulation and of each process of a
    ///   host; `nil`, the default, for one on which an exploration tries any order of jobs.
    /// - Precondition: the calling thread is one of the simulation's; the width is positive.
    public func captureExecutors(width: Int? = nil) {
        require(width.map { $0 > 0 } ?? true, "an executor needs a thread; choose a width of at least 1")
        Router.install()
        // Checks the thread.
        _ = loop
        captureCalls(executorWidth: width)
        if rlk_calls_are_caught() == 0 {
            noteEscape("calls of the C library are not caught, because the program has another one in itself")
        }
    }
}
