internal import CShims
internal import Glibc

extension RealSystem {
    package func pipe() -> (reading: Int32, writing: Int32)? {
        var ends: [Int32] = [-1, -1]
        return rlk_pipe(&ends) == 0 ? (ends[0], ends[1]) : nil
    }

    package func duplicate(_ descriptor: Int32) -> Int32 { fcntl(descriptor, F_DUPFD_CLOEXEC, 3) }

    package var environment: [[CChar]] {
        var lines: [[CChar]] = []
        var next = rlk_environment()
        while let entry = next, let line = entry.pointee {
            lines.append(Array(UnsafeBufferPointer(start: line, count: strlen(line) + 1)))
            next = entry + 1
        }
        return lines
    }

    package func user(named name: String) throws(SystemError) -> ChildProcess.User {
        var user: uid_t = 0
        var group: gid_t = 0
        var groups: UnsafeMutablePointer<gid_t>?
        var count: Int32 = 0
        let error = rlk_find_user(name, &user, &group, &groups, &count)
        guard error == 0 else { throw SystemError("find the user \(name)", errno: error) }
        defer { free(groups) }
        return ChildProcess.User(
            user, group: group, supplementaryGroups: Array(UnsafeBufferPointer(start: groups, count: Int(count))))
    }

    // MARK: Starting

    package func start(_ child: ChildStart) throws(ChildStart.Failure) -> Int32 {
        var pid: Int32 = -1
        var failure = rlk_failure()
        let groups = child.user?.supplementaryGroups ?? []
        let limits = child.limits.sorted { $0.key.number < $1.key.number }.map {
            rlk_limit(resource: $0.key.number, value: $0.value)
        }
        let directory = child.workingDirectory.map { Array($0.utf8CString) }
        let numbers = child.streams.map(Self.number)
        let status = withStrings(child.files.map { Array($0.utf8CString) }) { files in
            withStrings(child.arguments.map { Array($0.utf8CString) }) { arguments in
                withStrings(child.environment) { environment in
                    withPointers(limits, groups, directory ?? []) { limits, groups, directory in
                        var request = rlk_spawn_request()
                        (request.executables, request.arguments, request.environment) = (files, arguments, environment)
                        request.directory = directory.isEmpty ? nil : directory.baseAddress
                        request.streams = (numbers[0], numbers[1], numbers[2])
                        request.group = Self.number(child.group)
                        (request.limits, request.limit_count) = (limits.baseAddress, Int32(limits.count))
                        if let user = child.user {
                            request.changes_user = 1
                            (request.uid, request.gid) = (user.identifier, user.group)
                            (request.groups, request.group_count) = (groups.baseAddress, Int32(groups.count))
                        }
                        return rlk_spawn(&request, &pid, &failure)
                    }
                }
            }
        }
        guard status == 0 else { throw ChildStart.Failure(Self.step(failure.step), errno: status) }
        return pid
    }

    private static func number(_ stream: ChildStart.Stream) -> Int32 {
        switch stream {
        case .inherit: Int32(RLK_STREAM_INHERIT)
        case .null: Int32(RLK_STREAM_NULL)
        case .descriptor(let descriptor): descriptor
        // The child sets up its streams in order.
        case .standardOutput: STDOUT_FILENO
        }
    }

    private static func number(_ group: ChildProcess.Group) -> Int32 {
        switch group {
        case .inherit: Int32(RLK_GROUP_INHERIT)
        case .newGroup: Int32(RLK_GROUP_NEW)
        case .newSession: Int32(RLK_SESSION_NEW)
        }
    }

    private static func step(_ number: Int32) -> ChildStart.Step {
        switch number {
        case Int32(RLK_STEP_STREAMS): .streams
        case Int32(RLK_STEP_GROUP): .group
        case Int32(RLK_STEP_LIMITS): .limits
        case Int32(RLK_STEP_USER): .user
        case Int32(RLK_STEP_DIRECTORY): .directory
        case Int32(RLK_STEP_EXECUTE): .execute
        default: .fork
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

    // MARK: Signals and reaping

    package func openProcess(_ identifier: Int32) -> Int32 { rlk_pidfd_open(identifier) }

    package func send(_ signal: Int32, toProcess descriptor: Int32) -> Int32 {
        rlk_pidfd_send_signal(descriptor, signal)
    }

    package func kill(_ identifier: Int32, _ signal: Int32) -> Int32 { Glibc.kill(identifier, signal) }

    package func state(ofChild identifier: Int32, _ descriptor: Int32, reaps: Bool) -> ChildState {
        var exit = rlk_exit()
        guard rlk_child_state(identifier, descriptor, reaps ? 1 : 0, &exit) == 0 else { return .unknown }
        return switch exit.code {
        case 0: .running
        case 1: .ended(.exited(exit.status))  // CLD_EXITED, an enumerator in some versions of the headers
        default:
            .ended(.signalled(Signal(rawValue: exit.status), coreDumped: exit.code == 3))  // CLD_DUMPED
        }
    }

    package func reapLater(_ identifier: Int32, _ descriptor: Int32) {
        // Without room for a thread the child stays a zombie until this process ends: no caller can receive the error.
        _ = rlk_reap_later(identifier, descriptor >= 0 ? duplicate(descriptor) : -1)
    }
}
