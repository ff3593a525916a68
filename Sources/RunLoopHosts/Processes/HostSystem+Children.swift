internal import Glibc
internal import RunLoopCore
internal import RunLoopUnix

extension HostSystem {
    func pipe() -> (reading: Int32, writing: Int32)? {
        let pipe = SimulatedPipe.make()
        let reading = add(pipe.reading)
        guard reading >= 0 else { return nil }
        let writing = add(pipe.writing)
        if writing >= 0 { return (reading, writing) }
        close(reading)
        errno = EMFILE
        return nil
    }

    // MARK: Starting

    func start(_ child: ChildStart) throws(ChildStart.Failure) -> Int32 {
        guard let process else { preconditionFailure("a system outlives its process") }
        guard machine.processes.count < machine.mostProcesses else { throw .init(.fork, errno: EAGAIN) }
        var streams: [OpenDescription] = []
        for (number, stream) in child.streams.enumerated() {
            if case .standardOutput = stream {
                streams.append(streams[1])
            } else {
                streams.append(try description(of: stream, number))
            }
        }
        let directory = child.workingDirectory.map { machine.absolute($0, from: process.workingDirectory) }
        if let directory, !machine.disk.isDirectory(directory) {
            throw .init(.directory, errno: machine.disk.reason(againstUseOf: directory) ?? ENOTDIR)
        }
        let files = child.files.map { machine.absolute($0, from: directory ?? process.workingDirectory) }
        if let file = files.first(where: { machine.programs[$0] != nil }) {
            return process.start(file, child, streams: streams).identifier
        }
        throw .init(.execute, errno: files.contains { machine.disk.exists($0) } ? EACCES : ENOENT)
    }

    private func description(
        of stream: ChildStart.Stream, _ number: Int
    ) throws(ChildStart.Failure) -> OpenDescription {
        switch stream {
        case .null: return StandardStream()
        case .inherit, .standardOutput: return standardStream(number) ?? StandardStream()
        case .descriptor(let descriptor):
            guard let description = description(of: descriptor) else { throw .init(.streams, errno: EBADF) }
            return description
        }
    }

    // MARK: Signals, and the end

    func openProcess(_ identifier: Int32) -> Int32 {
        guard let process = machine.processes.first(where: { $0.identifier == identifier }) else {
            errno = ESRCH
            return -1
        }
        return add(process.end)
    }

    func send(_ signal: Int32, toProcess descriptor: Int32) -> Int32 {
        guard let end = description(of: descriptor) as? ProcessEnd, let process = end.process, !process.isReaped else {
            errno = ESRCH
            return -1
        }
        process.take(signal)
        return 0
    }

    func kill(_ identifier: Int32, _ signal: Int32) -> Int32 {
        let targets = machine.processes.filter {
            identifier < 0 ? $0.group == -identifier : $0.identifier == identifier
        }
        for target in targets { target.take(signal) }
        guard targets.isEmpty else { return 0 }
        errno = ESRCH
        return -1
    }

    func state(ofChild identifier: Int32, _ descriptor: Int32, reaps: Bool) -> ChildState {
        guard let child = process?.child(identifier) else { return .unknown }
        guard let status = child.status else { return .running }
        if reaps { child.reap() }
        return .ended(status)
    }

    func reapLater(_ identifier: Int32, _ descriptor: Int32) {
        process?.child(identifier)?.isAbandoned()
    }
}
