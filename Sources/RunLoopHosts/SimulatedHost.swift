internal import RunLoopCore
public import RunLoopKit
internal import RunLoopSimulation
internal import RunLoopUnix

/// A host of a ``SimulatedNetwork``, with a process that runs a program. Use it from the simulation's threads; it is
/// `Sendable`.
public final class SimulatedHost: Sendable {
    /// Its name.
    public let name: String
    // Unsafe, but only the thread whose turn it is uses it.
    nonisolated(unsafe) let machine: Machine
    /// What its process does; `nil` on the host of the test's own threads.
    private let program: (@Sendable (RunLoop) throws -> Void)?
    private let testSystem: HostSystem?
    private weak let network: SimulatedNetwork?
    private let state = Locked(State())

    private struct State {
        var process: Process?
        /// How often a process was started.
        var lives = 0
        var failure: (any Error)?
        /// By how much its clock is too fast.
        var drift: Int64 = 0
    }

    private struct Process {
        let world: SimulatedWorld
        let system: HostSystem
        let thread: LoopThread
        let life: Int
    }

    init(
        _ machine: Machine, of network: SimulatedNetwork, program: @escaping @Sendable (RunLoop) throws -> Void
    ) {
        name = machine.name
        self.machine = machine
        self.network = network
        self.program = program
        testSystem = nil
    }

    /// The host of the test's own threads.
    init(_ machine: Machine, _ system: HostSystem) {
        name = machine.name
        self.machine = machine
        (network, program, testSystem) = (nil, nil, system)
    }

    /// Its addresses, in digits.
    public var addresses: [String] { machine.addresses }

    // MARK: Its life

    /// Whether its process runs: not before its end is forgotten by ``start()``, and not after a crash.
    public var isRunning: Bool { state.withLock { $0.process != nil } }

    /// What its program has thrown, the last time that it ran; `nil` if nothing.
    public var failure: (any Error)? { state.withLock { $0.failure } }

    /// What other threads may ask of the main loop of its process, such as a test that has a block run there; `nil` if
    /// none runs.
    public var remote: RunLoop.Remote? { state.withLock { $0.process?.thread.remote } }

    /// Starts its program anew, in a new process, at the present time of its clock. Does nothing while one runs, or on the
    /// host of the test.
    public func start() {
        guard let network, let program, !isRunning else { return }
        machine.isUp = true
        let life = state.withLock { state in
            state.lives += 1
            state.failure = nil
            return state.lives
        }
        let system = HostSystem(machine, mostDescriptors: 1_024)
        let simulation = network.simulation
        let world = simulation.makeWorld(named: name, life: life, wallTime: simulation.wallTime, descriptors: system)
        WorldSystem.calls.set(system, in: world)
        HostResolver.finder.set({ [unowned network] in network.find($0) }, in: world)
        network.network.note(machine, "started")
        let thread = world.startMain(ended: { [self] in processEnded(life) }) { [self] loop in
            do {
                try program(loop)
            } catch {
                state.withLock { $0.failure = error }
                network.network.note(machine, "failed: \(error)")
                loop.endAllRuns()
            }
        }
        state.withLock { $0.process = Process(world: world, system: system, thread: thread, life: life) }
    }

    /// The main thread of a process has ended.
    private func processEnded(_ life: Int) {
        let process = state.withLock { state -> Process? in
            guard state.process?.life == life else { return nil }
            defer { state.process = nil }
            return state.process
        }
        guard let process else { return }
        machine.network.note(machine, "ended")
        process.system.closeAll()
    }

    /// Stops the machine where it is, as a loss of power does: its threads run nothing more, its connections are gone
    /// without a word, and what arrives is lost until it starts again. Does nothing if it is down. On a thread of the host
    /// itself the call does not return.
    public func crash() {
        require(program != nil, "the test itself runs on this host; crash another one")
        guard machine.isUp else { return }
        machine.isUp = false
        machine.network.note(machine, "crashed")
        let process = state.withLock { state in
            defer { state.process = nil }
            return state.process
        }
        guard let process else { return }
        process.system.vanish()
        machine.forgetListeners()
        process.world.kill()
    }

    func resetConnections(to other: SimulatedHost) {
        let system = testSystem ?? state.withLock { $0.process?.system }
        system?.resetConnections(to: other.machine)
    }
}
