internal import CPrograms
internal import CShims
internal import Glibc
@_spi(Ports) internal import RunLoopCore
@_spi(Ports) internal import RunLoopSimulation
@_spi(Ports) internal import RunLoopUnix

/// The children of a program, which are processes of its host.
extension SystemProgram {
    func answerChild(_ request: Request) -> Int64 {
        let (first, second, third, _) = request.arguments
        let number = Int32(truncatingIfNeeded: first)
        switch request.kind {
        case rlk_request_begin_fork: return beginFork(request)
        case rlk_request_end_fork: return endFork(request.slot, Int32(truncatingIfNeeded: second))
        case rlk_request_begin_child: return beginChild(request.slot)
        case rlk_request_end_child:
            beginning[request.slot] = nil
            process.end(with: number)
        case rlk_request_execute: return execute(request)
        case rlk_request_await_child: return awaitChild(request)
        case rlk_request_set_group:
            return setGroup(of: number, Int32(truncatingIfNeeded: second), beginsSession: third == 1)
        case rlk_request_group:
            let other = number == 0 ? process : process.machine.processes.first { $0.processIdentifier == number }
            guard let other else { return -Int64(ESRCH) }
            return Int64(second == 1 ? other.session : other.group)
        case rlk_request_open_process:
            return self.number(process.openProcess(Int32(truncatingIfNeeded: second)))
        default:
            return result(process.send(Int32(truncatingIfNeeded: second), toProcess: descriptor(request)))
        }
        return 0
    }

    private func beginChild(_ slot: Int32) -> Int64 {
        guard process.machine.processes.count < process.machine.mostProcesses else { return -Int64(EAGAIN) }
        let child = Process(forkedFrom: process)
        beginning[slot] = child
        return Int64(child.processIdentifier)
    }

    // MARK: Copies

    private func beginFork(_ request: Request) -> Int64 {
        guard process.machine.processes.count < process.machine.mostProcesses else { return -Int64(EAGAIN) }
        let child = Process(forkedFrom: process)
        child.copyFacts(of: process)
        let seed = "\(process.machine.name) \(child.processIdentifier) \(path)"
        let numbers = process.machine.network.simulation.randomNumbers(for: seed)
        guard let program = try? SystemProgram(path, of: child, seededBy: numbers) else {
            child.end(with: 1)
            child.reap()
            return -Int64(ENOMEM)
        }
        child.program = program
        forked[request.slot] = child
        withUnsafeBytes(of: program.pageDescriptor) { request.set($0) }
        return Int64(child.processIdentifier)
    }

    private func endFork(_ slot: Int32, _ system: Int32) -> Int64 {
        guard let child = forked.removeValue(forKey: slot), let program = child.program as? SystemProgram else {
            return -Int64(EAGAIN)
        }
        guard system > 0 else {
            child.end(with: 1)
            child.reap()
            return Int64(system)
        }
        program.adopt(system, from: self, slot)
        // A signal may have ended it.
        guard child.status == nil else {
            program.end()
            return 0
        }
        let name = "\(child.machine.name)/\(path.split(separator: "/").last!)-\(child.processIdentifier)"
        child.machine.note("process \(child.processIdentifier): a copy of process \(process.processIdentifier)")
        child.start(named: name, life: 1) { _ in program.serve(0) }
        return 0
    }

    private func setGroup(of number: Int32, _ group: Int32, beginsSession: Bool) -> Int64 {
        let target =
            [0, process.processIdentifier].contains(number)
            ? process : process.children.first { $0.processIdentifier == number }
        guard let target else { return -Int64(ESRCH) }
        if beginsSession {
            guard target.group != target.processIdentifier else { return -Int64(EPERM) }
            (target.group, target.session) = (target.processIdentifier, target.processIdentifier)
            return Int64(target.session)
        }
        guard group >= 0 else { return -Int64(EINVAL) }
        target.group = group == 0 ? target.processIdentifier : group
        return 0
    }

    // MARK: Programs

    /// A program to run, and the arguments with its name.
    private struct Executable {
        let path: String
        let commandLine: [String]
        /// The program, if a test has installed it.
        let program: SimulatedProcess.Program?
    }

    /// Runs a program in a child that begins, or in the process itself.
    private func execute(_ request: Request) -> Int64 {
        let (_, count, variableCount, _) = request.arguments
        let texts = request.text.split(separator: "\0", omittingEmptySubsequences: false).map(String.init)
        guard texts.count > Int(count + variableCount) else { return -Int64(EINVAL) }
        let lines = texts[(1 + Int(count))...].prefix(Int(variableCount))
        let variables = Dictionary(
            lines.compactMap { line in
                line.firstIndex(of: "=").map { (String(line[..<$0]), String(line[line.index(after: $0)...])) }
            }
        ) { first, _ in first }
        do {
            let executable = try executable(at: texts[0], Array(texts[1...].prefix(Int(count))))
            guard let child = beginning[request.slot] else { return try runHere(executable, variables, request.slot) }
            return try run(executable, variables, in: child, request.slot)
        } catch let refusal as Refusal {
            return -Int64(refusal.reason)
        } catch { return -Int64((error as? SystemError)?.errno ?? ENOEXEC) }
    }

    /// Finds the program of a path, which is one that a test has installed, one of the machine, or a script.
    private func executable(
        at text: String, _ commandLine: [String], depth: Int = 0
    ) throws(Refusal) -> Executable {
        let path = Directories.absolute(text, from: process.workingDirectory)
        if let program = process.machine.programs[path] {
            return Executable(path: path, commandLine: commandLine, program: program)
        }
        if text.isEmpty { throw Refusal(ENOENT) }
        let beginning: [UInt8]
        do throws(Refusal) {
            let node = try process.machine.disk.node(at: path, as: process.user, followsLast: false)
            if let link = node as? LinkNode, depth < 5 {
                let target = Directories.absolute(link.target, from: Directories.parent(of: path))
                return try executable(at: target, commandLine, depth: depth + 1)
            }
            guard let file = node as? FileNode else { throw Refusal(EACCES) }
            guard file.ownership.permissions & 0o111 != 0 else { throw Refusal(EACCES) }
            try file.check(.search, process.user)
            beginning = Array(file.content.prefix(256))
        } catch {
            guard error.reason == ENOENT, isOfMachine(path) else { throw error }
            beginning = try Self.beginning(ofMachineFile: path)
            if beginning.first != UInt8(ascii: "#") {
                return Executable(path: path, commandLine: commandLine, program: nil)
            }
        }
        guard beginning.starts(with: "#!".utf8), depth < 5 else { throw Refusal(ENOEXEC) }
        let line = String(decoding: beginning.dropFirst(2).prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
        let words = line.split(maxSplits: 1) { $0 == " " || $0 == "\t" }.map(String.init)
        guard let interpreter = words.first else { throw Refusal(ENOEXEC) }
        return try executable(at: interpreter, words + [text] + commandLine.dropFirst(), depth: depth + 1)
    }

    /// Returns `true` if a path leads to files of the machine of the test.
    private func isOfMachine(_ path: String) -> Bool {
        ["/usr/", "/bin/", "/opt/", Directories.parent(of: self.path) + "/"].contains { path.hasPrefix($0) }
    }

    private static func beginning(ofMachineFile path: String) throws(Refusal) -> [UInt8] {
        guard access(path, X_OK) == 0, let file = fopen(path, "r") else { throw Refusal(errno) }
        defer { fclose(file) }
        var room = [UInt8](repeating: 0, count: 256)
        let count = fread(&room, 1, room.count, file)
        // Of a directory, nothing can be read.
        guard count > 0 else { throw Refusal(EACCES) }
        return Array(room.prefix(count))
    }

    /// Closes the descriptors that another program does not inherit.
    private func closeOnExec(in process: Process) {
        for number in process.descriptors.numbers {
            let index = Int(number - DescriptorTable.first)
            let isKept = index < rlk_most_descriptors && rlk_closes_on_exec(page, Int32(index)) == 0
            // The signals of a parent are no child's.
            if !isKept || process.descriptors[number] is SignalQueue { process.close(number) }
        }
    }

    private func program(
        of executable: Executable, in process: Process, _ slot: Int32
    ) throws -> SystemProgram {
        let seed = "\(process.machine.name) \(process.processIdentifier) \(executable.path)"
        return try SystemProgram(
            executable.path, of: process, seededBy: process.machine.network.simulation.randomNumbers(for: seed),
            after: (self, slot))
    }

    private func run(
        _ executable: Executable, _ variables: [String: String], in child: Process, _ slot: Int32
    ) throws -> Int64 {
        let system = executable.program == nil ? try program(of: executable, in: child, slot) : nil
        closeOnExec(in: child)
        child.prepare([executable.path] + executable.commandLine.dropFirst(), variables)
        beginning[slot] = nil
        // A signal may have ended it.
        guard child.status == nil else { return 0 }
        child.program = system
        let name = executable.path.split(separator: "/").last!
        let label = "\(child.machine.name)/\(name)-\(child.processIdentifier)"
        child.start(named: label, life: 1) { [unowned child] loop in
            if let program = executable.program { return child.run(program, loop) }
            do {
                try system?.launch(executable.commandLine)
                system?.serve(0)
            } catch {
                child.machine.note("process \(child.processIdentifier) failed: \(error)")
                child.exitCode = 127
                loop.endAllRuns()
            }
        }
        return 0
    }

    /// Runs a program in place of this one.
    private func runHere(_ executable: Executable, _ variables: [String: String], _ slot: Int32) throws -> Int64 {
        guard executable.program == nil, slot == 0, servers.count == 1 else {
            let reason =
                executable.program == nil
                ? "runs \(executable.path) in place of a program with threads"
                : "runs the installed \(executable.path) without a child"
            reason.withCString { rlk_installed_calls().pointee.escape($0) }
            return -Int64(EACCES)
        }
        let next = try program(of: executable, in: process, slot)
        let former = process.variables.variables
        process.prepare([executable.path] + executable.commandLine.dropFirst(), variables)
        do { try next.launch(executable.commandLine) } catch {
            process.prepare(commandLine, former)
            throw error
        }
        closeOnExec(in: process)
        giveWay(to: next)
        return 0
    }

    // MARK: The ends of children

    /// The end of a child, as a program reads it.
    private struct End {
        let code: Int32
        let value: Int32
        let user: UInt32

        init(of child: Process) {
            let (exited, killed): (Int32, Int32) = (1, 2)
            user = child.user.identifier
            switch child.status {
            case .exited(let status): (code, value) = (exited, status)
            case .signalled(let signal, _): (code, value) = (killed, signal.rawValue)
            default: (code, value) = (killed, SIGKILL)
            }
        }
    }

    private func awaitChild(_ request: Request) -> Int64 {
        let (kind, number, options, _) = request.arguments
        let parent = process
        while true {
            let children = parent.children.filter { isMeant($0, by: kind, number, of: parent) }
            guard !children.isEmpty else { return -Int64(ECHILD) }
            if let child = children.first(where: { $0.status != nil }) {
                withUnsafeBytes(of: End(of: child)) { request.set($0) }
                let identifier = child.processIdentifier
                if options & 2 == 0 { child.reap() }
                return Int64(identifier)
            }
            if options & 1 != 0 { return 0 }
            let waited = rest(request.slot, for: -1, at: children.map(\.description)) {
                children.contains { $0.status != nil }
            }
            guard waited == 0 else { return waited }
        }
    }

    private func isMeant(_ child: Process, by kind: Int64, _ number: Int64, of parent: Process) -> Bool {
        let (all, single, group): (Int64, Int64, Int64) = (0, 1, 2)
        switch kind {
        case all: return true
        case single: return Int64(child.processIdentifier) == number
        case group: return child.group == (number == 0 ? parent.group : Int32(truncatingIfNeeded: number))
        default: return (parent.descriptors[descriptor(number)] as? ProcessDescription)?.process === child
        }
    }
}
