@_spi(Ports) public import RunLoopKit
@_spi(Ports) internal import RunLoopSimulation
public import RunLoopUnix

/// A host of a ``SimulatedNetwork``, with a process that runs a program. `Sendable`; use it from the simulation's
/// threads.
public final class SimulatedHost: Sendable {
    /// The host's name.
    public let name: String
    // Unsafe, but used only by the thread whose turn it is.
    nonisolated(unsafe) let machine: Machine
    nonisolated(unsafe) var state = State()
    /// The program of the host's process, which returns a status to exit with, if any; `nil` on the host of the test's
    /// own threads.
    private let program: Program?
    typealias Program = @Sendable (RunLoop, Process) throws -> Int32?
    let service: Service?
    private let environment: [String: String]
    private let user: ChildProcess.User
    private let mayFail: Bool
    /// The test itself, on its own host.
    private let test: Process?

    struct State {
        var process: Process?
        /// The number of processes started so far.
        var lives = 0
        var ending: Ending?
        var messages: [Message] = []
        /// The end of the process, if the watchdog is not fed in time.
        var starvation: Appointment?
    }

    init(
        _ machine: Machine, _ service: Service? = nil, user: ChildProcess.User = .root,
        environment: [String: String] = [:], mayFail: Bool = false, test: Process? = nil,
        _ program: Program? = nil
    ) {
        (name, self.machine, self.service, self.mayFail) = (machine.name, machine, service, mayFail)
        (self.user, self.environment) = (user, environment)
        (self.test, self.program) = (test, program)
    }

    /// The host's addresses, in digits.
    public var addresses: [String] { machine.sockets.addresses }

    /// The host's disk.
    public var disk: SimulatedDisk { machine.disk }

    // MARK: Start and end

    /// A Boolean value that indicates whether the host's process runs.
    public var isRunning: Bool { state.process != nil }

    /// The reason why a process ended.
    public enum Ending: Sendable {
        /// The main thread has left its loop, and nothing was wrong.
        case returned
        /// The program has returned this status. A status other than zero is a fault of the simulation if the host may
        /// not fail.
        case exited(Int32)
        /// The program has thrown an error: a fault of the simulation if the host may not fail.
        case failed(any Error)
        /// A signal ended the process.
        case killed(Signal)
        /// The service manager ended the process because it received no sign of life in time.
        case starvedWatchdog
        /// The host crashed.
        case crashed
    }

    /// The reason why the host's last process ended; `nil` while the present one runs.
    public var ending: Ending? { state.ending }

    /// The remote of the process's main loop, with which other threads, such as the test's, can run a block there;
    /// `nil` if no process runs.
    public var remote: RunLoop.Remote? { state.process?.remote }

    /// Starts the host's program anew, in a new process, at the present time of the host's clock. Does nothing while a
    /// process runs, or on the host of the test.
    public func start() {
        guard let program, !isRunning, !machine.network.isOver else { return }
        machine.sockets.isUp = true
        state.lives += 1
        state.ending = nil
        let console = StandardStream { [machine] in machine.note("wrote \($0)") }
        let variables = environment.merging(service?.environment ?? [:]) { $1 }
        let process = Process(
            on: machine, user: user, environment: SimulatedEnvironment(variables),
            streams: [StandardStream(), console, console])
        if service != nil { process.manager = { [weak self] in self?.take($0) } }
        machine.note("started")
        if state.lives > 1 { machine.network.simulation.meet(.hostStartedAgain) }
        state.process = process
        process.endHandler = { [self] in hasEnded($0) }
        process.failureHandler = { [self] in noteFailure($0) }
        process.start(named: name, life: state.lives) { [self] loop in
            do {
                guard let status = try program(loop, process) else { return }
                process.exitCode = status & 0xff
                noteExit(process.exitCode)
            } catch {
                machine.note("failed: \(error)")
                noteFailure(error)
                state.ending = .failed(error)
            }
            loop.endAllRuns()
        }
    }

    func noteExit(_ code: Int32) {
        if code != 0 { noteFailure(FailedExit(code: code)) }
        state.ending = .exited(code)
    }

    func noteFailure(_ error: any Error) {
        if !mayFail { machine.network.simulation.noteFailure(of: name, error) }
    }

    private func hasEnded(_ status: ChildProcess.ExitStatus) {
        switch status {
        case .signalled(let signal, _): state.ending = state.ending ?? .killed(signal)
        case .exited(let code) where state.process?.program != nil: noteExit(code)
        default: break
        }
        forgetProcess(ending ?? .returned)
        // A service manager ends the remaining processes of a service.
        guard service != nil else { return }
        for process in machine.processes { process.end(by: .kill) }
    }

    private func forgetProcess(_ ending: Ending) {
        (state.process, state.ending) = (nil, ending)
        state.starvation?.callOff()
    }

    /// Stops the machine where it is, as a loss of power does: its threads run nothing more, its connections are gone
    /// without notice, and arriving bytes are lost until it starts again. Does nothing if the host is down. On a thread
    /// of the host itself the call does not return.
    public func crash() {
        require(program != nil, "the test itself runs on this host; crash another one")
        guard machine.sockets.isUp else { return }
        machine.note("crashed")
        machine.network.simulation.meet(.hostCrashed)
        if isRunning { forgetProcess(.crashed) }
        machine.crash()
    }

    func ends(ofConnectionsTo other: Machine) -> [SimulatedSocket] {
        ((test.map { [$0] } ?? []) + machine.processes).flatMap { $0.ends(ofConnectionsTo: other) }
    }

    // MARK: Faults of calls

    /// Lets system calls of the host's processes fail, in an explored simulation, from now on. In other simulations
    /// they do not.
    ///
    /// A schedule names each such fault, with the process, the call and its object: `store: write /log fails with EIO`.
    ///
    /// ```swift
    /// store.callsMayFail(with: [.fullDisk, .ioErrors], atMost: 2)
    /// ```
    ///
    /// O(1).
    ///
    /// - Parameters:
    ///   - faults: the kinds of faults, in place of earlier ones; empty for no faults.
    ///   - most: the largest number of the host's calls that may fail from now on.
    public func callsMayFail(with faults: CallFaults, atMost most: Int = 1) {
        guard machine.network.simulation.makePlaces() else { return }
        (machine.faults, machine.faultsLeft) = (faults, most)
    }

    // MARK: Programs and processes

    /// Installs a program at a path, from which a `ChildProcess` of this host can start it.
    ///
    /// ```swift
    /// host.install(program: "/usr/bin/backup") { process in
    ///     process.loop.perform(afterDelay: .seconds(60)) { process.exit(process.arguments.isEmpty ? 2 : 0) }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - path: the path from the root.
    ///   - program: the program, called in each process that runs it. Captured objects live as long as the simulation.
    public func install(program path: String, _ program: @escaping SimulatedProcess.Program) {
        require(path.hasPrefix("/"), "a program is installed at a path from the root, such as /bin/\(path)")
        machine.disk.installDirectory(at: Directories.parent(of: path))
        machine.programs[path] = program
    }

    /// The largest number of the host's processes, including the main one; `nil`, the default, for any number. Starting
    /// another one fails with `EAGAIN`.
    public var processLimit: Int? {
        get { machine.mostProcesses == .max ? nil : machine.mostProcesses }
        set { machine.mostProcesses = newValue ?? .max }
    }

    /// A process of a host. A `Sendable` value.
    public struct RunningProcess: Sendable, Hashable {
        /// The number of the process.
        public let identifier: Int32
        /// The path and the arguments of the process's program; empty for the main process.
        public let command: [String]
        /// A Boolean value that indicates whether the process has ended without being reaped by its parent.
        public let isZombie: Bool
    }

    /// The processes of the host, by number.
    public var processes: [RunningProcess] {
        machine.processes.map {
            RunningProcess(identifier: $0.processIdentifier, command: $0.command, isZombie: $0.status != nil)
        }
    }

    // MARK: Signals

    /// Sends the host's process a signal, as `kill` does. A watched signal goes to its sources, and an ignored one does
    /// nothing; any other signal ends the process where it is, and the system closes its descriptors. Does nothing if
    /// no process runs.
    ///
    /// - Precondition: the signal does not stop processes, as SIGSTOP does; that is not simulated.
    public func send(_ signal: Signal) {
        state.process?.take(signal.rawValue)
    }

    // MARK: The wall clock

    /// The time of the host's clock, which starts at the simulation's time when the host is added. Setting it
    /// simulates a person or a time server, and notifies the wall timers of the host's process. The clock runs while
    /// the host is down.
    public var wallTime: RunLoop.WallTime {
        get { machine.clock.time }
        set { machine.clock.time = newValue }
    }

    /// Makes the host's clock fast by `billionths`, or slow if they are negative: with 20,000 it gains 1.7 s a day.
    ///
    /// - Precondition: `billionths` is more than -1,000,000,000.
    public func setWallClockDrift(billionths: Int64) {
        machine.clock.setDrift(billionths: billionths)
    }
}

/// The end of a program with a status other than zero.
private struct FailedExit: Error, CustomStringConvertible {
    let code: Int32

    var description: String { "exited with code \(code)" }
}
