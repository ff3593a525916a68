internal import CShims
internal import Glibc
internal import RunLoopCore

/// What a child is to be started with.
struct SpawnRequest {
    var executable: ChildProcess.Executable
    var arguments: [String] = []
    var environment = ChildProcess.Environment.inherit
    var workingDirectory: String?
    var streams: [ChildProcess.Stream]
    var group = ChildProcess.Group.inherit
    var user: ChildProcess.User?
    var limits: [ChildProcess.Resource: UInt64] = [:]

    /// A running child, and this process's ends of its pipes.
    struct Spawned {
        var pid: Int32
        var pipes: [PipeEnd?]
    }

    var operation: String { "spawn \(executable)" }

    func spawn() throws(SystemError) -> Spawned {
        try checkStrings()
        var borrowed: [Int32] = []
        // By the end of this function the child has its own copies.
        defer { for descriptor in borrowed { close(descriptor) } }
        var numbers: [Int32] = []
        var pipes: [PipeEnd?] = []
        for (target, stream) in streams.enumerated() {
            var end: PipeEnd?
            switch stream {
            case .inherit: numbers.append(Int32(RLK_STREAM_INHERIT))
            case .null: numbers.append(Int32(RLK_STREAM_NULL))
            case .descriptor(let descriptor): numbers.append(try borrow(descriptor, &borrowed))
            case .pipe:
                let (own, childs) = try makePipe(forReading: target != 0)
                defer { close(childs) }
                end = own
                numbers.append(try borrow(childs, &borrowed))
            }
            pipes.append(end)
        }
        return Spawned(pid: try start(numbers), pipes: pipes)
    }

    /// A copy beyond the standard descriptors, so that moving one into place never overwrites another.
    private func borrow(_ descriptor: Int32, _ borrowed: inout [Int32]) throws(SystemError) -> Int32 {
        let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 3)
        guard copy >= 0 else { throw .last("\(operation): give it descriptor \(descriptor)") }
        borrowed.append(copy)
        return copy
    }

    private func makePipe(forReading: Bool) throws(SystemError) -> (own: PipeEnd, childs: Int32) {
        var ends: [Int32] = [-1, -1]
        guard rlk_pipe(&ends) == 0 else { throw .last("\(operation): make a pipe") }
        let (own, childs) = forReading ? (ends[0], ends[1]) : (ends[1], ends[0])
        do {
            return (try PipeEnd(owning: own), childs)
        } catch {
            close(childs)
            throw error
        }
    }

    private func start(_ numbers: [Int32]) throws(SystemError) -> Int32 {
        var pid: Int32 = -1
        var failure = rlk_failure()
        let groups = user?.supplementaryGroups ?? []
        let limits = limits.sorted { $0.key.number < $1.key.number }.map {
            rlk_limit(resource: $0.key.number, value: $0.value)
        }
        let directory = workingDirectory.map { Array($0.utf8CString) }
        let status = withStrings(files.map { Array($0.utf8CString) }) { files in
            withStrings(([executable.description] + arguments).map { Array($0.utf8CString) }) { arguments in
                withStrings(environmentLines) { environment in
                    withPointers(limits, groups, directory ?? []) { limits, groups, directory in
                        var request = rlk_spawn_request()
                        (request.executables, request.arguments, request.environment) = (files, arguments, environment)
                        request.directory = directory.isEmpty ? nil : directory.baseAddress
                        request.streams = (numbers[0], numbers[1], numbers[2])
                        request.group = groupNumber
                        (request.limits, request.limit_count) = (limits.baseAddress, Int32(limits.count))
                        if let user {
                            request.changes_user = 1
                            (request.uid, request.gid) = (user.identifier, user.group)
                            (request.groups, request.group_count) = (groups.baseAddress, Int32(groups.count))
                        }
                        return rlk_spawn(&request, &pid, &failure)
                    }
                }
            }
        }
        guard status == 0 else { throw SystemError(words(for: failure.step), errno: status) }
        return pid
    }

    /// What the child was about to do when it failed.
    private func words(for step: Int32) -> String {
        switch step {
        case Int32(RLK_STEP_STREAMS): "\(operation): set up its standard descriptors"
        case Int32(RLK_STEP_GROUP): "\(operation): give it a \(group == .newGroup ? "group" : "session")"
        case Int32(RLK_STEP_LIMITS): "\(operation): set its resource limits"
        case Int32(RLK_STEP_USER): "\(operation): run it as \(user.map { "\($0)" } ?? "another user")"
        case Int32(RLK_STEP_DIRECTORY): "\(operation): go to \(workingDirectory ?? "its directory")"
        default: operation
        }
    }

    private var groupNumber: Int32 {
        switch group {
        case .inherit: Int32(RLK_GROUP_INHERIT)
        case .newGroup: Int32(RLK_GROUP_NEW)
        case .newSession: Int32(RLK_SESSION_NEW)
        }
    }

    /// The files that may be meant, in order.
    private var files: [String] {
        guard case .named(let name) = executable, !name.isEmpty, !name.contains("/") else {
            return [executable.description]
        }
        let path = getenv("PATH").map { String(cString: $0) } ?? "/bin:/usr/bin"
        // An empty entry is the working directory.
        return path.split(separator: ":", omittingEmptySubsequences: false).map { $0.isEmpty ? name : "\($0)/\(name)" }
    }

    /// Bytes, because what is inherited need not be text.
    private var environmentLines: [[CChar]] {
        switch environment {
        case .inherit: return inheritedLines
        case .only(let variables): return lines(variables)
        case .updating(let changes):
            let kept = inheritedLines.filter { line in
                let name = String(decoding: line.prefix { $0 != 61 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
                return changes[name] == nil
            }
            return kept + lines(changes.compactMapValues { $0 })
        }
    }

    private var inheritedLines: [[CChar]] {
        var lines: [[CChar]] = []
        var next = rlk_environment()
        while let entry = next, let line = entry.pointee {
            lines.append(Array(UnsafeBufferPointer(start: line, count: strlen(line) + 1)))
            next = entry + 1
        }
        return lines
    }

    /// Sorted, so that equal requests make equal children.
    private func lines(_ variables: [String: String]) -> [[CChar]] {
        variables.sorted { $0.key < $1.key }.map { Array("\($0.key)=\($0.value)".utf8CString) }
    }

    /// A zero byte would end a string early, and `=` would end the name of a variable early.
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

    private func withPointers<A, B, C, Result>(
        _ a: [A], _ b: [B], _ c: [C],
        _ body: (UnsafeBufferPointer<A>, UnsafeBufferPointer<B>, UnsafeBufferPointer<C>) -> Result
    ) -> Result {
        a.withUnsafeBufferPointer { a in
            b.withUnsafeBufferPointer { b in c.withUnsafeBufferPointer { c in body(a, b, c) } }
        }
    }

    /// Calls `body` with a list of C strings that ends with a null pointer.
    private func withStrings<Result>(
        _ texts: [[CChar]], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Result
    ) -> Result {
        var bytes = texts.flatMap { $0 }
        return bytes.withUnsafeMutableBufferPointer { bytes in
            var offset = 0
            var pointers: [UnsafeMutablePointer<CChar>?] = texts.map { text in
                defer { offset += text.count }
                return bytes.baseAddress! + offset
            }
            pointers.append(nil)
            return pointers.withUnsafeBufferPointer { body($0.baseAddress!) }
        }
    }
}
