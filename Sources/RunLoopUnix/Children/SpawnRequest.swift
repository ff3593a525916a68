internal import Glibc
@_spi(Ports) internal import RunLoopCore
internal import RunLoopKit

struct SpawnRequest {
    let system: any SystemCalls
    var executable: ChildProcess.Executable
    var arguments: [String] = []
    var environment = ChildProcess.Environment.inherit
    var workingDirectory: String?
    var streams: [ChildProcess.Stream]
    var group = ChildProcess.Group.inherit
    var user: ChildProcess.User?
    var limits: [ChildProcess.Resource: UInt64] = [:]

    var operation: String { "spawn \(executable)" }

    /// - Returns: the number of the running child, and this process's ends of its pipes.
    func spawn() throws(SystemError) -> (pid: Int32, pipes: [PipeEnd?]) {
        try checkStrings()
        var borrowed: [Int32] = []
        // By the end of this function, the child has its own copies.
        defer { for descriptor in borrowed { system.close(descriptor) } }
        var ends: [ChildStart.Stream] = []
        var pipes: [PipeEnd?] = []
        for (target, stream) in streams.enumerated() {
            var pipe: PipeEnd?
            switch stream {
            case .inherit: ends.append(.inherit)
            case .null: ends.append(.null)
            case .descriptor(let descriptor): ends.append(.descriptor(try borrow(descriptor, &borrowed)))
            case .standardOutput:
                require(
                    target == STDERR_FILENO,
                    "only a child's standard error goes to its standard output: give descriptor \(target) another stream"
                )
                ends.append(.standardOutput)
            case .pipe:
                guard let (reading, writing) = system.pipe() else { throw .last("\(operation): make a pipe") }
                let (own, childs) = target == STDIN_FILENO ? (writing, reading) : (reading, writing)
                defer { system.close(childs) }
                pipe = PipeEnd(owning: own, of: system)
                ends.append(.descriptor(try borrow(childs, &borrowed)))
            }
            pipes.append(pipe)
        }
        return (try start(ends), pipes)
    }

    /// Returns a copy that is not a standard descriptor, so that no copy overwrites another when it is moved into
    /// place.
    private func borrow(_ descriptor: Int32, _ borrowed: inout [Int32]) throws(SystemError) -> Int32 {
        let copy = system.duplicate(descriptor)
        guard copy >= 0 else { throw .last("\(operation): give it descriptor \(descriptor)") }
        assert(copy > STDERR_FILENO, "a descriptor for a child is one of its standard streams already")
        borrowed.append(copy)
        return copy
    }

    private func start(_ streams: [ChildStart.Stream]) throws(SystemError) -> Int32 {
        assert(streams.count == 3, "a child has three standard streams")
        do throws(ChildStart.Failure) {
            return try system.start(
                ChildStart(
                    files: files, arguments: [executable.description] + arguments, environment: environmentLines,
                    workingDirectory: workingDirectory, streams: streams, group: group, user: user, limits: limits))
        } catch {
            throw SystemError(words(for: error.step), errno: error.errno)
        }
    }

    /// Returns words for the step at which the start failed.
    private func words(for step: ChildStart.Step) -> String {
        switch step {
        case .streams: "\(operation): set up its standard descriptors"
        case .group: "\(operation): give it a \(group == .newGroup ? "group" : "session")"
        case .limits: "\(operation): set its resource limits"
        case .user: "\(operation): run it as \(user.map { "\($0)" } ?? "another user")"
        case .directory: "\(operation): go to \(workingDirectory ?? "its directory")"
        case .fork, .execute: operation
        }
    }

    /// The candidate files for the executable, in order.
    private var files: [String] {
        guard case .named(let name) = executable, !name.isEmpty, !name.contains("/") else {
            return [executable.description]
        }
        let path = system.variable("PATH") ?? "/bin:/usr/bin"
        // An empty entry is the working directory.
        return path.split(separator: ":", omittingEmptySubsequences: false).map { $0.isEmpty ? name : "\($0)/\(name)" }
    }

    private var environmentLines: [[CChar]] {
        switch environment {
        case .inherit: return system.environment
        case .only(let variables): return lines(variables)
        case .updating(let changes):
            let kept = system.environment.filter { line in
                let name = String(decoding: line.prefix { $0 != 61 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
                return changes[name] == nil
            }
            return kept + lines(changes.compactMapValues { $0 })
        }
    }

    /// Returns the variables as lines, sorted so that equal requests start identical children.
    private func lines(_ variables: [String: String]) -> [[CChar]] {
        variables.sorted { $0.key < $1.key }.map { Array("\($0.key)=\($0.value)".utf8CString) }
    }

    /// Checks for zero bytes, which would end a string early, and for `=` in names of variables, which would end the
    /// name early.
    private func checkStrings() throws(SystemError) {
        var texts = [executable.description, workingDirectory ?? ""] + arguments
        let variables: [String: String?] =
            switch environment {
            case .inherit: [:]
            case .only(let variables): variables.mapValues { $0 }
            case .updating(let changes): changes
            }
        texts += variables.flatMap { [$0.key, $0.value ?? ""] }
        if let name = variables.keys.first(where: { $0.isEmpty || $0.utf8.contains(UInt8(ascii: "=")) }) {
            throw SystemError("\(operation): name a variable \"\(name)\"", errno: EINVAL)
        }
        if texts.contains(where: { $0.utf8.contains(0) }) {
            throw SystemError("\(operation): give it a text with a zero byte", errno: EINVAL)
        }
    }
}
