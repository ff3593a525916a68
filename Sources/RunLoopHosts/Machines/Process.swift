internal import Glibc
@_spi(Ports) internal import RunLoopCore
@_spi(Ports) internal import RunLoopKit
@_spi(Ports) internal import RunLoopSimulation
@_spi(Ports) internal import RunLoopUnix

/// A process of a simulated machine: its threads, its descriptors, and the other state that a kernel keeps for it. The
/// system calls, which RunLoopUnix makes, are in extensions.
///
/// Unchecked and not locked: used only by the thread whose turn it is.
final class Process: SystemCalls, SimulatedDescriptors, @unchecked Sendable {
    let processIdentifier: Int32
    let machine: Machine
    /// The group, whose processes can all be signalled together.
    var group: Int32
    /// The session, which has the number of the process that began it.
    var session: Int32
    var workingDirectory: String
    /// The user that the process runs as, from its start to its end.
    let user: ChildProcess.User
    /// The path of the process's program, and the arguments; empty for a main process.
    private(set) var command: [String]
    /// The process's exit status; `nil` while it runs.
    private(set) var status: ChildProcess.ExitStatus?
    /// The code of the exit status, if no signal ends the process.
    var exitCode: Int32 = 0
    /// Called when the process has ended.
    var endHandler: ((ChildProcess.ExitStatus) -> Void)?

    var descriptors: DescriptorTable
    private(set) var hasStandardStreams: Bool
    /// The target of descriptors of the process itself.
    private(set) lazy var description = ProcessDescription(self)
    private(set) var variables: SimulatedEnvironment
    var ignoredSignals: Set<Signal> = []
    /// Receives the process's messages to its service manager.
    var manager: ((String) -> Void)?

    /// The parent; `nil` if it has ended, or does not ask how the process ends.
    private weak var parent: Process?
    private(set) var children: [Process] = []
    /// The name of the process's threads.
    private(set) var name: String
    private var world: (any SimulatedWorld)?
    private var thread: LoopThread?
    /// The process as its program sees it.
    private var view: SimulatedProcess?
    /// The process of the system, if a program of the system runs in this one.
    var program: (any RunningProgram)?
    /// Called when a fault of its own, such as SIGSEGV, ends the process of the system, or stops it for ever.
    var failureHandler: ((any Error) -> Void)?

    /// - Parameters:
    ///   - identifier: the number; `nil` for the next one of the machine.
    ///   - group: the group; `nil` for a new one.
    init(
        _ identifier: Int32? = nil, on machine: Machine, parent: Process? = nil, command: [String] = [],
        group: Int32? = nil, user: ChildProcess.User = .root, workingDirectory: String = "/",
        environment: SimulatedEnvironment = .init([:]), streams: [OpenDescription] = [], mostDescriptors: Int = 1_024
    ) {
        processIdentifier = identifier ?? machine.newProcessIdentifier()
        (self.machine, self.parent, self.command) = (machine, parent, command)
        name = machine.name
        (self.group, self.workingDirectory) = (group ?? processIdentifier, workingDirectory)
        session = parent?.session ?? processIdentifier
        self.user = user
        (variables, hasStandardStreams) = (environment, !streams.isEmpty)
        descriptors = DescriptorTable(streams, limit: mostDescriptors)
        parent?.children.append(self)
    }

    /// Makes a child with the descriptors of its parent, which starts when it runs a program.
    convenience init(forkedFrom parent: Process) {
        self.init(
            on: parent.machine, parent: parent, group: parent.group, user: parent.user,
            workingDirectory: parent.workingDirectory)
        (descriptors, hasStandardStreams) = (parent.descriptors.copied(), true)
        machine.processes.append(self)
    }

    /// Copies the arguments and the variables of the process that was forked.
    func copyFacts(of other: Process) { (command, variables) = (other.command, other.variables) }

    /// Takes the arguments and the variables of a program that the process is about to run.
    func prepare(_ command: [String], _ variables: [String: String]) {
        (self.command, self.variables) = (command, SimulatedEnvironment(variables))
        machine.note("process \(processIdentifier): \(command.joined(separator: " "))")
    }

    /// The number of the parent; 1 for none.
    var parentIdentifier: Int32 { parent?.processIdentifier ?? 1 }

    var remote: RunLoop.Remote? { thread?.remote }

    /// `true` if the calling thread belongs to the process.
    var isCurrent: Bool { world.map { RunLoop.currentWorld === $0 } ?? false }

    // MARK: Start

    /// Starts the process's main thread.
    ///
    /// - Parameter life: the number of earlier processes with the name.
    func start(named name: String, life: Int, program: @escaping @Sendable (RunLoop) -> Void) {
        self.name = name
        let network = machine.network
        let world = network.simulation.makeWorld(
            named: name, on: machine.name, life: life, clock: machine.clock, descriptors: self,
            surroundings: self)
        WorldSystem.calls.set(self, in: world)
        HostResolver.finder.set({ [unowned self] in machine.find($0) }, in: world)
        self.world = world
        if !machine.processes.contains(where: { $0 === self }) { machine.processes.append(self) }
        // Processes share a disk, on which one may find a change that another is about to complete.
        if machine.processes.count > 1 { _ = network.simulation.makePlaces() }
        thread = world.startMain(ended: { [self] in hasEnded(.exited(exitCode)) }, setUp: program)
    }

    /// Runs a program on the main thread.
    func run(_ program: SimulatedProcess.Program, _ loop: RunLoop) {
        let streams = (0..<3).map { PipeEnd(owning: DescriptorTable.first + $0, of: self) }
        let view = SimulatedProcess(self, environment: variables.variables, loop: loop, streams: streams)
        self.view = view
        do {
            try program(view)
        } catch {
            machine.note("process \(processIdentifier) failed: \(error)")
            view.exit(1)
        }
    }

    // MARK: End

    /// Ends the process where it is, by a signal. Does not return on one of its own threads.
    func end(by signal: Signal) {
        guard status == nil else { return }
        machine.network.simulation.meet(.processKilled)
        hasEnded(.signalled(signal, coreDumped: false))
        world?.kill()
    }

    /// Ends the process where it is, with a code. Does not return on one of its own threads.
    func end(with code: Int32) {
        guard status == nil else { return }
        hasEnded(.exited(code))
        world?.kill()
    }

    /// Closes the remaining descriptors, and notifies the parent.
    private func hasEnded(_ status: ChildProcess.ExitStatus) {
        guard self.status == nil else { return }
        self.status = status
        for descriptor in descriptors.numbers { close(descriptor) }
        for child in children { child.isAbandoned() }
        children.removeAll()
        (view, thread) = (nil, nil)
        program?.end()
        machine.note("process \(processIdentifier) \(status)")
        description.tell()
        endHandler?(status)
        endHandler = nil
        guard let parent, !parent.ignores(.child) else { return reap() }
        if let program = parent.program { _ = program.take(.child) } else { parent.deliver(.child) }
    }

    /// Abandons the process. Called when its parent no longer asks how it ends.
    func isAbandoned() {
        parent = nil
        if status != nil { reap() }
    }

    /// Gives the process's number back.
    func reap() {
        parent?.children.removeAll { $0 === self }
        machine.processes.removeAll { $0 === self }
        guard let world, !world.isKilled else { return }
        // After the process's last thread has ended.
        let simulation = machine.network.simulation
        _ = simulation.schedule(at: simulation.now, "a process is released", from: nil, on: machine.name) {
            simulation.letGo(of: world)
        }
    }

    /// Ends the process without notice, because its machine has stopped. Does not return on one of its own threads.
    func vanish() {
        for socket in descriptors.targets(BoundSocket.self) { socket.vanish() }
        descriptors.removeAll()
        status = .lost
        program?.end()
        (view, thread, endHandler) = (nil, nil, nil)
        world?.kill()
    }
}

/// A process of the system in which a program of the system runs.
protocol RunningProgram: AnyObject {
    /// Returns `true` if the program has chosen to ignore a signal.
    func ignores(_ signal: Signal) -> Bool
    /// Takes a signal. Returns `false` if the signal ends the program.
    func take(_ signal: Signal) -> Bool
    /// Ends the process of the system, if it still runs.
    func end()
}

/// The end of a program of the system by a signal of its own.
struct Crash: Error, CustomStringConvertible {
    let signal: Signal

    var description: String { "crashed with \(signal)" }
}

// MARK: - The surroundings and the time

extension Process: SimulatedSurroundings {
    var hostName: UnsafePointer<CChar> { UnsafePointer(machine.cName) }
    var userNumber: UInt32 { user.identifier }
    var groupNumber: UInt32 { user.group }
    var furtherGroups: [UInt32] { user.supplementaryGroups }
    var users: [UInt8] { Accounts(on: machine.disk).users }

    func user(named name: String) throws(SystemError) -> ChildProcess.User {
        if let user = Accounts(on: machine.disk).user(named: name) { return user }
        throw SystemError("find the user \(name)", errno: ENOENT)
    }

    var environment: [[CChar]] { variables.copies }
    func variable(_ name: String) -> String? { variables.value(of: name).map { String(cString: $0) } }
    func removeVariable(_ name: String) { variables.set(name, nil) }
    func openNotifySocket() -> Int32 { descriptors.add(OpenDescription()) }

    func notify(_ descriptor: Int32, at address: [UInt8], _ message: [UInt8]) -> Int {
        guard let manager else { return failure(ECONNREFUSED) }
        manager(String(decoding: message, as: UTF8.self))
        return message.count
    }

    var monotonicMicroseconds: Int64 { machine.network.simulation.now.nanoseconds / 1_000 }
    func holdTime(for what: @autoclosure () -> String, on loop: RunLoop) -> (any TimeHold)? { nil }
    func makeHolds(for socket: Int32, on loop: RunLoop, _ origin: RunLoop.Origin) -> StreamHolds? { nil }
}

/// The target of descriptors of a process, which is readable once the process has ended.
final class ProcessDescription: OpenDescription {
    private(set) weak var process: Process?

    fileprivate init(_ process: Process) {
        self.process = process
    }

    override var readiness: DescriptorEvents? { process?.status == nil && process != nil ? [] : .readable }
}
