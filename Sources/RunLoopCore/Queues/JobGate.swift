/// An actor that a task enters in order to wait, on an executor that keeps the task's job until the wait ends.
///
/// A continuation would resume a task that is isolated to an actor on the default executor first: a trip to another
/// thread, which takes 10 µs and is invisible to virtual time. A continuation resumed just before its task comes to
/// rest takes a path in the runtime that ThreadSanitizer reports as a race.
actor JobGate {
    nonisolated let unownedExecutor: UnownedSerialExecutor
    private var passes = 0

    /// - Parameter executor: the executor, which the owner of the gate keeps alive.
    init(_ executor: some SerialExecutor) {
        unownedExecutor = executor.asUnownedSerialExecutor()
    }

    /// Increments a counter, because the compiler does not enter an actor in which there is nothing to do.
    func pass() {
        passes &+= 1
    }
}
