internal import CShims
internal import Glibc
internal import RunLoopCore

/// What a child is to be started with.
struct SpawnRequest {
    var executable: ChildProcess.Executable
    var arguments: [String]
    var environment: ChildProcess.Environment
    var workingDirectory: String?
    var streams: [ChildProcess.Stream]
    var group: ChildProcess.Group

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
        let error = withStrings([executable.description] + arguments) { arguments in
            withStrings(environmentLines ?? []) { environment in
                executable.description.withCString { executable in
                    withOptionalString(workingDirectory) { directory in
                        var request = rlk_spawn_request()
                        request.executable = executable
                        if case .named = self.executable { request.searches_path = 1 }
                        request.arguments = arguments
                        request.environment = environmentLines == nil ? nil : environment
                        request.directory = directory
                        request.streams = (numbers[0], numbers[1], numbers[2])
                        request.group = groupNumber
                        return rlk_spawn(&request, &pid)
                    }
                }
            }
        }
        guard error == 0 else { throw SystemError(operation, errno: error) }
        return pid
    }

    private var groupNumber: Int32 {
        switch group {
        case .inherit: Int32(RLK_GROUP_INHERIT)
        case .newGroup: Int32(RLK_GROUP_NEW)
        case .newSession: Int32(RLK_SESSION_NEW)
        }
    }

    /// Sorted, so that equal requests make equal children.
    private var environmentLines: [String]? {
        guard case .only(let variables) = environment else { return nil }
        return variables.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
    }

    /// A zero byte would end a string early, and `=` would end the name of a variable early.
    private func checkStrings() throws(SystemError) {
        var texts = [executable.description, workingDirectory ?? ""] + arguments
        if case .only(let variables) = environment {
            texts += variables.flatMap { [$0.key, $0.value] }
            if let name = variables.keys.first(where: { $0.isEmpty || $0.utf8.contains(UInt8(ascii: "=")) }) {
                throw SystemError("\(operation): name a variable \"\(name)\"", errno: EINVAL)
            }
        }
        if texts.contains(where: { $0.utf8.contains(0) }) {
            throw SystemError("\(operation): give it a text with a zero byte", errno: EINVAL)
        }
    }

    private func withOptionalString<Result>(_ text: String?, _ body: (UnsafePointer<CChar>?) -> Result) -> Result {
        guard let text else { return body(nil) }
        return text.withCString(body)
    }

    /// Calls `body` with a list of C strings that ends with a null pointer.
    private func withStrings<Result>(
        _ texts: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Result
    ) -> Result {
        var pointers = texts.map { strdup($0) }
        require(!pointers.contains(nil), "there is no memory for the arguments of a child process")
        pointers.append(nil)
        defer { for pointer in pointers { free(pointer) } }
        return pointers.withUnsafeBufferPointer { body($0.baseAddress!) }
    }
}
