internal import Glibc
@_spi(Ports) internal import RunLoopSimulation
@_spi(Ports) internal import RunLoopUnix

extension Process {
    func start(_ child: ChildStart) throws(ChildStart.Failure) -> Int32 {
        guard machine.processes.count < machine.mostProcesses else { throw .init(.fork, errno: EAGAIN) }
        var streams: [OpenDescription] = []
        for (number, stream) in child.streams.enumerated() {
            if case .standardOutput = stream {
                streams.append(streams[1])
            } else {
                streams.append(try target(of: stream, number))
            }
        }
        // Only root may choose a user, even its own.
        if child.user != nil, !user.isRoot { throw .init(.user, errno: EPERM) }
        let user = child.user ?? self.user
        let directory = child.workingDirectory.map { Directories.absolute($0, from: workingDirectory) }
        if let directory, let reason = machine.disk.reason(againstWorkingIn: directory, as: user) {
            throw .init(.directory, errno: reason)
        }
        let files = child.files.map { Directories.absolute($0, from: directory ?? workingDirectory) }
        for file in files {
            guard let program = machine.programs[file] else { continue }
            return start(program, at: file, child, as: user, in: directory ?? workingDirectory, streams)
        }
        throw .init(.execute, errno: files.contains { machine.disk.exists($0) } ? EACCES : ENOENT)
    }

    private func target(of stream: ChildStart.Stream, _ number: Int) throws(ChildStart.Failure) -> OpenDescription {
        switch stream {
        case .null: return StandardStream()
        case .inherit, .standardOutput:
            let stream = hasStandardStreams ? descriptors[DescriptorTable.first + Int32(number)] : nil
            return stream ?? StandardStream()
        case .descriptor(let descriptor):
            guard let target = descriptors[descriptor] else { throw .init(.streams, errno: EBADF) }
            return target
        }
    }

    private func start(
        _ program: @escaping SimulatedProcess.Program, at path: String, _ child: ChildStart, as user: ChildProcess.User,
        in directory: String, _ streams: [OpenDescription]
    ) -> Int32 {
        let process = Process(
            on: machine, parent: self, command: [path] + child.arguments.dropFirst(),
            group: child.group == .inherit ? group : nil, user: user, workingDirectory: directory,
            environment: SimulatedEnvironment(child.environment), streams: streams,
            mostDescriptors: child.limits[.openFiles].map { Int(clamping: $0) } ?? 1_024)
        // As for a service manager that listens only to the main process.
        if manager != nil { process.manager = { _ in } }
        machine.note("process \(process.processIdentifier): \(process.command.joined(separator: " "))")
        let name = "\(machine.name)/\(path.split(separator: "/").last!)-\(process.processIdentifier)"
        process.start(named: name, life: 1) { process.run(program, $0) }
        return process.processIdentifier
    }

    // MARK: The end of a child

    private func child(_ identifier: Int32) -> Process? { children.first { $0.processIdentifier == identifier } }

    func state(ofChild identifier: Int32, _ descriptor: Int32, reaps: Bool) -> ChildProcess.ExitStatus? {
        guard let child = child(identifier) else { return .lost }
        if reaps, child.status != nil { child.reap() }
        return child.status
    }

    func reapLater(_ identifier: Int32, _ descriptor: Int32) {
        child(identifier)?.isAbandoned()
    }

    // An orphaned child gets no new parent.
    func reapOrphans() {}
}
