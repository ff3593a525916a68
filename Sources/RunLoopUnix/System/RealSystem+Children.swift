internal import CShims
internal import Glibc

extension RealSystem {
    func pipe() -> (reading: Int32, writing: Int32)? {
        var ends: [Int32] = [-1, -1]
        return rlk_pipe(&ends) == 0 ? (ends[0], ends[1]) : nil
    }

    func duplicate(_ descriptor: Int32) -> Int32 { fcntl(descriptor, F_DUPFD_CLOEXEC, 3) }

    var environment: [[CChar]] {
        var lines: [[CChar]] = []
        var next = rlk_environment()
        while let entry = next, let line = entry.pointee {
            lines.append(Array(UnsafeBufferPointer(start: line, count: strlen(line) + 1)))
            next = entry + 1
        }
        return lines
    }

    func user(named name: String) throws(SystemError) -> ChildProcess.User {
        var (user, found) = (passwd(), UnsafeMutablePointer<passwd>?.none)
        var (error, size) = (ERANGE, 1024)
        while error == ERANGE {
            size *= 2
            error = withUnsafeTemporaryAllocation(of: CChar.self, capacity: size) {
                getpwnam_r(name, &user, $0.baseAddress!, size, &found)
            }
        }
        guard error == 0, found != nil else {
            throw SystemError("find the user \(name)", errno: error == 0 ? ENOENT : error)
        }
        var (groups, count) = ([gid_t](), Int32(16))
        // With too little room, the call fails and returns the number needed.
        repeat {
            groups = [gid_t](repeating: 0, count: Int(count))
        } while getgrouplist(name, user.pw_gid, &groups, &count) < 0 && count > groups.count
        return ChildProcess.User(
            user.pw_uid, group: user.pw_gid, supplementaryGroups: Array(groups.prefix(Int(count))))
    }

    // MARK: Starting

    func start(_ child: ChildStart) throws(ChildStart.Failure) -> Int32 {
        OwnChildren.shared.startBegins()
        var started: Int32?
        defer { OwnChildren.shared.startEnds(started) }
        let pid = try spawn(child)
        started = pid
        return pid
    }

    private func spawn(_ child: ChildStart) throws(ChildStart.Failure) -> Int32 {
        var pid: Int32 = -1
        var failure = rlk_failure()
        let groups = child.user?.supplementaryGroups ?? []
        let limits = child.limits.sorted { $0.key.number < $1.key.number }.map {
            rlk_limit(resource: $0.key.number, value: $0.value)
        }
        assert(child.streams.count == 3, "a child has three standard streams")
        let numbers = child.streams.map(Self.number)
        var request = rlk_spawn_request()
        request.streams = (numbers[0], numbers[1], numbers[2])
        request.group = Self.number(child.group)
        (request.limit_count, request.group_count) = (Int32(limits.count), Int32(groups.count))
        if let user = child.user {
            (request.changes_user, request.uid, request.gid) = (1, user.identifier, user.group)
        }
        // The pointers are valid only in this function, to which the call below passes arrays and a string.
        func spawn(
            _ limits: UnsafePointer<rlk_limit>, _ groups: UnsafePointer<gid_t>, _ directory: UnsafePointer<CChar>?
        ) -> Int32 {
            (request.limits, request.groups, request.directory) = (limits, groups, directory)
            return rlk_spawn(&request, &pid, &failure)
        }
        let status = withStrings(child.files.map { Array($0.utf8CString) }) { files in
            withStrings(child.arguments.map { Array($0.utf8CString) }) { arguments in
                withStrings(child.environment) { environment in
                    (request.executables, request.arguments, request.environment) = (files, arguments, environment)
                    return spawn(limits, groups, child.workingDirectory)
                }
            }
        }
        if status == 0 { return pid }
        throw ChildStart.Failure(ChildStart.Step(rawValue: failure.step) ?? .fork, errno: status)
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

    /// Calls `body` with a list of C strings that ends with a null pointer.
    private func withStrings<Result>(
        _ texts: [[CChar]], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Result
    ) -> Result {
        var bytes = texts.flatMap { $0 }
        return bytes.withUnsafeMutableBufferPointer { bytes in
            var offset = 0
            var pointers: [UnsafeMutablePointer<CChar>?] = texts.map { text in
                defer { offset += text.count }
                assert(offset < bytes.count, "a text begins beyond the memory for it")
                return bytes.baseAddress! + offset
            }
            pointers.append(nil)
            return pointers.withUnsafeBufferPointer { body($0.baseAddress!) }
        }
    }

    // MARK: Signals and reaping

    func openProcess(_ identifier: Int32) -> Int32 { rlk_pidfd_open(identifier) }

    func send(_ signal: Int32, toProcess descriptor: Int32) -> Int32 {
        rlk_pidfd_send_signal(descriptor, signal)
    }

    func kill(_ identifier: Int32, _ signal: Int32) -> Int32 { Glibc.kill(identifier, signal) }

    func state(ofChild identifier: Int32, _ descriptor: Int32, reaps: Bool) -> ChildProcess.ExitStatus? {
        var status: Int32 = 0
        let state: ChildProcess.ExitStatus? =
            switch rlk_child_state(identifier, descriptor, reaps ? 1 : 0, &status) {
            case -1: .lost
            case 0: nil
            case 1: .exited(status)  // CLD_EXITED, an enumerator in some versions of the headers
            case let code: .signalled(Signal(rawValue: status), coreDumped: code == 3)  // CLD_DUMPED
            }
        if state == .lost || (reaps && state != nil) { OwnChildren.shared.left(identifier) }
        return state
    }

    func reapOrphans() { OwnChildren.shared.reapOthers() }

    func reapLater(_ identifier: Int32, _ descriptor: Int32) {
        assert(identifier > 0, "any child would be reaped")
        OwnChildren.shared.left(identifier)
        rlk_reap_later(identifier, descriptor >= 0 ? duplicate(descriptor) : -1)
    }
}
