internal import CInterposition
@_spi(Ports) internal import RunLoopCore
@_spi(Ports) public import RunLoopSimulation

extension Simulation {
    /// Makes Swift's default executor and the main actor parts of the simulation.
    ///
    /// Tasks without an executor preference, and actors without a custom executor, run on Swift's default executor, on
    /// threads that the simulation does not know, so that simulated time may pass them by. Libraries start such tasks,
    /// as `debounce` of swift-async-algorithms does. From now on, tasks that a thread of the simulation starts or
    /// resumes run on a simulated thread, `default executor`, in the same order in every run. The main actor then
    /// belongs to the simulation's main loop: its jobs run there, in the common modes, and `MainActor.assumeIsolated`
    /// holds in its handlers. The process of a simulated host has its own `default executor`, and its main loop serves
    /// the main actor for its code. All share the properties of the main actor, as they share other static variables.
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
    /// From now on the simulation also answers its threads' calls to the C library for times, sleeps and random
    /// numbers, and with them `ContinuousClock`, `Task.sleep`, `Date()`, `UUID()` and others; see <doc:UnmodifiedCode>.
    /// Calls that it cannot answer are reported as escapes.
    ///
    /// In an exploration, a task that calls an actor of the default executor, or returns from it, may be overtaken by
    /// others, as on several threads; elsewhere it continues at once if the actor is idle.
    ///
    /// The call permanently replaces the executors of the process through a private interface of the Swift runtime, and
    /// was tried with Swift 6.3.1 on Linux. If the runtime does not accept the replacement, the call traps.
    ///
    /// With a width, jobs run on that number of threads, the most urgent first. A job that blocks in a `sleep`, a
    /// semaphore or a condition occupies its thread. If all threads are blocked and nothing will wake one, the waiting
    /// jobs and the blocked tasks are among the simulation's `waits`, and an exploration reports a deadlock. A thread
    /// still blocked when the simulation ends is ended there, and runs no more of the program.
    ///
    /// ```swift
    /// simulation.captureExecutors(width: 3)  // As a CI machine with three processors has.
    /// ```
    ///
    /// - Parameter width: the number of threads for the default executor of the simulation and of each host's process;
    ///   `nil`, the default, for one thread on which an exploration tries any order of jobs.
    /// - Precondition: the calling thread is one of the simulation's; the width is positive.
    public func captureExecutors(width: Int? = nil) {
        require(width.map { $0 > 0 } ?? true, "an executor needs a thread; choose a width of at least 1")
        Router.install()
        // Checks the thread.
        _ = loop
        captureCalls(executorWidth: width)
        if rlk_calls_are_caught() == 0 {
            noteEscape("calls of the C library are not caught, because the program contains a C library")
        }
    }
}
