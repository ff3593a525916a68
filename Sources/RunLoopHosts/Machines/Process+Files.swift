internal import Glibc
@_spi(Ports) internal import RunLoopUnix

extension Process {
    /// The path from the root.
    private func absolute(_ path: String) -> String {
        path.isEmpty ? path : Directories.absolute(path, from: workingDirectory)
    }

    private var disk: SimulatedDisk { machine.disk }
    private func file(_ descriptor: Int32) -> OpenFile? { descriptors[descriptor] as? OpenFile ?? failure(EBADF) }

    private func perform(
        _ call: @autoclosure () -> String, _ faults: CallFaults = [], _ body: () throws(Refusal) -> Void
    ) -> Int32 {
        answer(call(), faults) { () throws(Refusal) in
            try body()
            return 0
        }
    }

    func open(_ path: String, flags: Int32) -> Int32 { open(path, flags: flags | O_NOFOLLOW, permissions: 0o600) }

    /// - Parameter permissions: the permissions of a new file.
    func open(_ path: String, flags: Int32, permissions: UInt32) -> Int32 {
        // As on Linux, nothing is made without a descriptor.
        guard descriptors.hasRoom else { return -1 }
        let creates = flags & O_CREAT != 0
        return answer("open \(absolute(path))", creates ? [.fullDisk, .ioErrors] : .ioErrors) { () throws(Refusal) in
            let node = try disk.open(absolute(path), flags: flags, permissions: permissions, as: user)
            return descriptors.add(OpenFile(node, on: disk, flags: flags))
        }
    }

    func lock(_ descriptor: Int32) -> Int32 { file(descriptor)?.lock() ?? -1 }
    func unlock(_ descriptor: Int32) { file(descriptor)?.unlock() }

    func leads(_ path: String, to descriptor: Int32) -> Bool {
        file(descriptor).map { (try? disk.node(at: absolute(path), as: user)) === $0.node } ?? false
    }

    func read(_ descriptor: Int32, into room: UnsafeMutableRawBufferPointer, at offset: Int) -> Int {
        guard let file = file(descriptor) else { return -1 }
        guard offset >= 0 else { return failure(EINVAL) }
        guard file.isReadable else { return failure(EBADF) }
        return answer("read \(file.node.path)", [.interruptions, .ioErrors]) { () throws(Refusal) in
            let rest = try disk.read(file.node).dropFirst(offset).prefix(room.count)
            room.copyBytes(from: rest)
            return rest.count
        }
    }

    func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, at offset: Int) -> Int {
        guard let open = file(descriptor), let file = open.writable else { return -1 }
        let end = open.appends ? file.content.count : nil
        let bytes = UnsafeRawBufferPointer(rebasing: bytes.prefix(shortened(bytes.count, "write \(file.path)")))
        return answer("write \(file.path)", [.interruptions, .fullDisk, .ioErrors]) { () throws(Refusal) in
            try disk.write(bytes, to: file, at: end ?? offset)
        }
    }

    func size(of descriptor: Int32) -> Int {
        guard let file = file(descriptor) else { return -1 }
        return (file.node as? FileNode)?.content.count ?? failure(EINVAL)
    }

    func truncate(_ descriptor: Int32, to length: Int) -> Int32 {
        guard let file = file(descriptor) else { return -1 }
        guard let node = file.writable else { return failure(EINVAL) }
        return perform("truncate \(node.path)", .ioErrors) { () throws(Refusal) in
            try disk.truncate(node, to: length)
        }
    }

    func truncate(_ path: String, to length: Int) -> Int32 {
        perform("truncate \(absolute(path))", .ioErrors) { () throws(Refusal) in
            let node = try disk.node(at: absolute(path), as: user)
            guard let file = node as? FileNode else { throw Refusal(node is DirectoryNode ? EISDIR : EINVAL) }
            try file.check(.write, user)
            try disk.truncate(file, to: length)
        }
    }

    func allocate(_ descriptor: Int32, _ mode: Int32, _ offset: Int, _ length: Int) -> Int32 {
        guard let file = file(descriptor)?.writable else { return -1 }
        return perform("allocate \(file.path)", [.fullDisk, .ioErrors]) { () throws(Refusal) in
            try disk.allocate(file, mode, offset, length)
        }
    }

    func sync(_ descriptor: Int32) -> Int32 {
        guard let file = file(descriptor) else { return -1 }
        return perform("sync \(file.node.path)", .ioErrors) { () throws(Refusal) in try disk.sync(file.node) }
    }

    func map(_ descriptor: Int32) -> UnsafeRawBufferPointer? {
        guard let file = file(descriptor) else { return nil }
        guard file.node is FileNode else { return failure(EINVAL) }
        guard file.isReadable else { return failure(EACCES) }
        do throws(Refusal) {
            let content = try reach("read \(file.node.path)", .ioErrors) { () throws(Refusal) in
                try disk.read(file.node)
            }
            let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: content.count, alignment: 1)
            copy.copyBytes(from: content)
            return UnsafeRawBufferPointer(copy)
        } catch { return failure(error.reason) }
    }

    func unmap(_ contents: UnsafeRawBufferPointer) { contents.deallocate() }

    // MARK: Names

    // The files that TLS reads, such as certificates, are the system's.
    func contentsOfFile(_ path: String, upTo most: Int) -> [UInt8]? {
        WorldSystem.real.contentsOfFile(path, upTo: most)
    }

    func exists(_ path: String) -> Bool { machine.sockets.files[path] != nil || disk.exists(absolute(path), as: user) }

    func rename(_ path: String, to newPath: String) -> Int32 { rename(path, to: newPath, flags: 0) }

    func rename(_ path: String, to newPath: String, flags: Int) -> Int32 {
        perform("rename \(absolute(path)) to \(absolute(newPath))", [.fullDisk, .ioErrors]) { () throws(Refusal) in
            // The sockets of a machine lie beside its disk.
            if !sockets(below: path).isEmpty { throw Refusal(EBUSY) }
            try disk.rename(absolute(path), to: absolute(newPath), flags: flags, as: user)
        }
    }

    func removeFile(at path: String) -> Int32 {
        perform("remove \(absolute(path))", .ioErrors) { () throws(Refusal) in
            guard machine.sockets.files[path] != nil, !path.hasPrefix("@") else {
                return try disk.remove(absolute(path), as: user)
            }
            if let reason = disk.reason(againstNewFileAt: Directories.absolute(path, from: "/"), as: user) {
                throw Refusal(reason)
            }
            machine.sockets.removePath(path)
        }
    }

    func createDirectory(_ path: String) -> Int32 { createDirectory(path, permissions: 0o700) }

    func createDirectory(_ path: String, permissions: UInt32) -> Int32 {
        perform("create \(absolute(path))", [.fullDisk, .ioErrors]) { () throws(Refusal) in
            if machine.sockets.files[path] != nil { throw Refusal(EEXIST) }
            try disk.createDirectory(absolute(path), permissions: permissions, as: user)
        }
    }

    func createLink(_ path: String, to target: String) -> Int32 {
        perform("create \(absolute(path))", [.fullDisk, .ioErrors]) { () throws(Refusal) in
            if machine.sockets.files[path] != nil { throw Refusal(EEXIST) }
            try disk.createLink(absolute(path), to: target, as: user)
        }
    }

    func addName(_ path: String, of node: DiskNode) -> Int32 {
        perform("link \(node.path) as \(absolute(path))", [.fullDisk, .ioErrors]) { () throws(Refusal) in
            if machine.sockets.files[path] != nil { throw Refusal(EEXIST) }
            try disk.addName(absolute(path), of: node, as: user)
        }
    }

    func removeDirectory(_ path: String) -> Int32 {
        perform("remove \(absolute(path))", .ioErrors) { () throws(Refusal) in
            if !sockets(below: path).isEmpty { throw Refusal(ENOTEMPTY) }
            try disk.removeDirectory(absolute(path), as: user)
        }
    }

    func contentsOfDirectory(_ path: String) -> [String]? {
        do throws(Refusal) {
            return try reach("list \(absolute(path))", .ioErrors) { () throws(Refusal) in
                let sockets = sockets(below: path).filter { !$0.contains("/") }
                return try disk.contentsOfDirectory(absolute(path), as: user) + sockets.map(String.init)
            }
        } catch { return failure(error.reason) }
    }

    /// The paths of sockets below a directory, relative to the directory.
    private func sockets(below directory: String) -> [Substring] {
        let name = Directories.name(absolute(directory))
        let start = name.hasSuffix("/") ? name : name + "/"
        return machine.sockets.files.keys.filter { !$0.hasPrefix("@") }
            .map { Directories.name(Directories.absolute($0, from: "/")) }
            .filter { $0.hasPrefix(start) }.map { $0.dropFirst(start.count) }
    }

    func syncDirectory(_ path: String) -> Int32 {
        perform("sync \(absolute(path))", .ioErrors) { () throws(Refusal) in
            try disk.sync(disk.directory(at: absolute(path), as: user))
        }
    }

    func setPermissions(_ permissions: UInt32, of descriptor: Int32) -> Int32 {
        guard let target = descriptors[descriptor] else { return -1 }
        guard let file = target as? OpenFile else { return target is any SocketCalls ? 0 : failure(EINVAL) }
        return perform("set permissions of \(file.node.path)") { () throws(Refusal) in
            try disk.setPermissions(permissions, of: file.node, as: user)
        }
    }

    func setPermissions(_ permissions: UInt32, at path: String) -> Int32 {
        if machine.sockets.files[path] != nil { return 0 }
        return perform("set permissions of \(absolute(path))") { () throws(Refusal) in
            try disk.setPermissions(permissions, of: disk.node(at: absolute(path), as: user), as: user)
        }
    }

    // MARK: File events

    func openFileWatcher() -> Int32 { descriptors.add(FileEventQueue(on: disk)) }

    func watch(_ path: String, with descriptor: Int32, for mask: UInt32) -> Int32 {
        (descriptors[descriptor] as? FileEventQueue)?.watch(absolute(path), for: mask, as: user) ?? -1
    }

    func unwatch(_ number: Int32, with descriptor: Int32) {
        (descriptors[descriptor] as? FileEventQueue)?.unwatch(number)
    }
}
