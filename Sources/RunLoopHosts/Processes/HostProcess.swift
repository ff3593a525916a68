internal import Glibc
internal import RunLoopCore
internal import RunLoopKit
internal import RunLoopSimulation
internal import RunLoopUnix

/// A process of a simulated machine: its threads, its system, and the state that the machine's kernel keeps for it.
///
/// Unchecked and not locked: only the thread whose turn it is uses it.
final class HostProcess: MachineProcess, @unchecked Sendable {
    let identifier: Int32
    let machine: Machine
    let system: HostSystem
    let group: Int32
    let workingDirectory: String
    private(set) var status: ChildProcess.ExitStatus?
    /// Called when it has ended.
    var endHandler: ((ChildProcess.ExitStatus) -> Void)?
    private(set) var command: [String] = []
    private(set) lazy var end = ProcessEnd(self)

    /// `nil` if its parent has ended, or does not ask how it ends.
    private weak var parent: HostProcess?
    private var children: [HostProcess] = []
    private let network: Network
    private var world: SimulatedWorld?
    private var thread: LoopThread?
    /// The process as its program sees it.
    private var view: SimulatedProcess?

    /// - Parameters:
    ///   - group: the group; `nil` for a new one.
    ///   - streams: the standard streams.
    init(
        _ identifier: Int32, on machine: Machine, _ network: Network, parent: HostProcess? = nil,
        group: Int32? = nil, workingDirectory: String = "/", environment: [String: String] = [:],
        streams: [OpenDescription] = [],
        mostDescriptors: Int = 1_024
    ) {
        (self.identifier, self.machine, self.network, self.parent) = (identifier, machine, network, parent)
        (self.group, self.workingDirectory) = (group ?? identifier, workingDirectory)
        system = HostSystem(
            machine, on: network, processIdentifier: identifier, environment: environment, streams: streams,
            mostDescriptors: mostDescriptors)
        system.process = self
    }

    /// The remote of its main loop.
    var remote: RunLoop.Remote? { thread?.remote }

    // MARK: Start and end

    /// Starts its main thread.
    ///
    /// - Parameters:
    ///   - name: the name of its threads.
    ///   - life: the number of earlier processes with that name.
    func start(named name: String, life: Int, program: @escaping @Sendable (RunLoop) -> Void) {
        let world = network.surroundings.simulation.makeWorld(
            named: name, on: machine.name, life: life, clock: machine.clock, descriptors: system)
        WorldSystem.calls.set(system, in: world)
        HostResolver.finder.set({ [unowned network] in network.find($0) }, in: world)
        self.world = world
        machine.add(self)
        thread = world.startMain(ended: { [self] in hasEnded(.exited(view?.exitCode ?? 0)) }, setUp: program)
    }

    func start(_ path: String, _ child: ChildStart, streams: [OpenDescription]) -> any MachineProcess {
        let process = HostProcess(
            machine.newProcessIdentifier(), on: machine, network, parent: self,
            group: child.group == .inherit ? group : nil, workingDirectory: directory(of: child),
            environment: variables(child.environment), streams: streams,
            mostDescriptors: child.limits[.openFiles].map { Int(clamping: $0) } ?? 1_024)
        process.command = [path] + child.arguments.dropFirst()
        // Like a service manager that listens to the main process alone.
        if system.manager != nil { process.system.manager = { _ in } }
        children.append(process)
        network.surroundings.note(
            machine.name, "process \(process.identifier): \(process.command.joined(separator: " "))")
        let name = "\(machine.name)/\(path.split(separator: "/").last!)-\(process.identifier)"
        let program = machine.programs[path]!
        process.start(named: name, life: 1) { process.run(program, $0) }
        return process
    }

    private func directory(of child: ChildStart) -> String {
        child.workingDirectory.map { machine.absolute($0, from: workingDirectory) } ?? workingDirectory
    }

    private func variables(_ lines: [[CChar]]) -> [String: String] {
        var variables: [String: String] = [:]
        for line in lines {
            let parts = line.dropLast().split(separator: 61, maxSplits: 1, omittingEmptySubsequences: false)
            let texts = parts.map { String(decoding: $0.map(UInt8.init(bitPattern:)), as: UTF8.self) }
            if texts.count == 2 { variables[texts[0]] = texts[1] }
        }
        return variables
    }

    private func run(_ program: SimulatedProcess.Program, _ loop: RunLoop) {
        let streams = (0..<3).map { PipeEnd(owning: HostSystem.first + $0, of: system) }
        let view = SimulatedProcess(self, environment: system.variables, loop: loop, streams: streams)
        self.view = view
        do {
            try program(view)
        } catch {
            network.surroundings.note(machine.name, "process \(identifier) failed: \(error)")
            view.exit(1)
        }
    }

    func take(_ number: Int32) {
        guard status == nil, number != 0 else { return }
        let signal = Signal(rawValue: number)
        require(
            ![.stop, .terminalStop, .backgroundRead, .backgroundWrite].contains(signal),
            "\(signal) would stop the process, which is not simulated; crash the host, or cut its links")
        network.surroundings.note(machine.name, "\(signal) to process \(identifier)")
        if system.send(signal) { end(by: signal) }
    }

    func end(by signal: Signal) {
        guard status == nil else { return }
        hasEnded(.signalled(signal, coreDumped: false))
        world?.kill()
    }

    /// Closes the remaining descriptors, and notifies the parent.
    private func hasEnded(_ status: ChildProcess.ExitStatus) {
        guard self.status == nil else { return }
        self.status = status
        system.closeAll()
        for child in children { child.isAbandoned() }
        children.removeAll()
        (view, thread) = (nil, nil)
        network.surroundings.note(machine.name, "process \(identifier) \(status)")
        end.tell()
        endHandler?(status)
        endHandler = nil
        guard let parent, !parent.system.ignores(.child) else { return reap() }
        _ = parent.system.send(.child)
    }

    func isAbandoned() {
        parent = nil
        if status != nil { reap() }
    }

    private(set) var isReaped = false

    func reap() {
        isReaped = true
        parent?.children.removeAll { $0 === self }
        machine.remove(self)
        guard let world, !world.isKilled else { return }
        // When its last thread has ended.
        network.surroundings.schedule(at: network.surroundings.now, "a process is released", on: machine.name) {
            [network] in
            network.surroundings.simulation.letGo(of: world)
        }
    }

    func child(_ identifier: Int32) -> (any MachineProcess)? { children.first { $0.identifier == identifier } }

    func vanish() {
        system.vanish()
        status = .lost
        (view, thread, endHandler) = (nil, nil, nil)
        world?.kill()
    }

    var isCurrent: Bool { world.map { RunLoop.currentWorld === $0 } ?? false }
}
