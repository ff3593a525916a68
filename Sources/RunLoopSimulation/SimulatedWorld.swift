@_spi(Ports) public import RunLoopCore

/// A world of a simulation's threads, with the state of their process and machine. The test's own threads have one, and
/// each process of a simulated host has another, which ``Simulation/makeWorld(named:on:life:clock:descriptors:surroundings:)``
/// makes.
@_spi(Ports) public protocol SimulatedWorld: World {
    /// Starts the main thread of the world's process. When it has ended, the other threads end as at the end of a
    /// simulation. Called once, on any thread of the simulation.
    ///
    /// - Parameters:
    ///   - ended: called last on the new thread.
    ///   - setUp: called first on the new thread, with its loop.
    func startMain(
        ended: @escaping @Sendable () -> Void, setUp: @escaping @Sendable (RunLoop) -> Void
    ) -> LoopThread

    /// Ends the world's threads where they are, as the system does when it kills a process. Any thread of the
    /// simulation, also one of this world's.
    func kill()

    /// `true` once the world's threads were ended where they were; the objects that they hold or share are kept. Any
    /// thread.
    var isKilled: Bool { get }
}
