internal import Glibc
internal import RunLoopCore
internal import RunLoopUnix

extension HostSystem {
    // MARK: Paths of sockets

    /// The path from the root.
    private func absolute(_ path: String) -> String {
        path.isEmpty ? path : machine.absolute(path, from: process?.workingDirectory ?? "/")
    }

    func socketFile(at path: String) -> SocketFile? { machine.files[path] }

    func setPermissions(_ permissions: UInt32, of descriptor: Int32) -> Int32 { openSocket(descriptor) == nil ? -1 : 0 }

    func setPermissions(_ permissions: UInt32, at path: String) -> Int32 {
        guard machine.files[path] == nil else { return 0 }
        errno = ENOENT
        return -1
    }

    // MARK: Files

    private func file(_ descriptor: Int32) -> OpenFile? {
        if let file = description(of: descriptor) as? OpenFile { return file }
        errno = EBADF
        return nil
    }

    func open(_ path: String, flags: Int32) -> Int32 {
        guard let node = machine.disk.open(absolute(path), flags: flags) else { return -1 }
        return add(OpenFile(node, on: machine.disk, access: flags & O_ACCMODE))
    }

    func lock(_ descriptor: Int32) -> Int32 {
        file(descriptor).map { machine.disk.lock($0.node, by: $0) } ?? -1
    }

    func unlock(_ descriptor: Int32) {
        if let file = file(descriptor) { machine.disk.unlock(file.node, by: file) }
    }

    func leads(_ path: String, to descriptor: Int32) -> Bool {
        file(descriptor).map { machine.disk.node(at: path) === $0.node } ?? false
    }

    func read(_ descriptor: Int32, into room: UnsafeMutableRawBufferPointer, at offset: Int) -> Int {
        guard let file = file(descriptor) else { return -1 }
        guard offset >= 0 else { return Int(file.fail(EINVAL)) }
        guard file.isReadable else { return Int(file.fail(EBADF)) }
        guard let content = machine.disk.read(file.node) else { return -1 }
        let rest = content.dropFirst(offset).prefix(room.count)
        room.copyBytes(from: rest)
        return rest.count
    }

    func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, at offset: Int) -> Int {
        guard let file = file(descriptor) else { return -1 }
        guard file.isWritable else { return Int(file.fail(EBADF)) }
        return machine.disk.write(bytes, to: file.node, at: offset)
    }

    func truncate(_ descriptor: Int32, to length: Int) -> Int32 {
        guard let file = file(descriptor) else { return -1 }
        return file.isWritable ? machine.disk.truncate(file.node, to: length) : file.fail(EINVAL)
    }

    func sync(_ descriptor: Int32) -> Int32 { file(descriptor).map { machine.disk.sync($0.node) } ?? -1 }

    func map(_ descriptor: Int32) -> UnsafeRawBufferPointer? {
        guard let file = file(descriptor) else { return nil }
        guard file.isReadable, !file.node.isDirectory else {
            errno = file.node.isDirectory ? EINVAL : EACCES
            return nil
        }
        guard let content = machine.disk.read(file.node) else { return nil }
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: content.count, alignment: 1)
        copy.copyBytes(from: content)
        return UnsafeRawBufferPointer(copy)
    }

    func unmap(_ contents: UnsafeRawBufferPointer) {
        contents.deallocate()
    }

    func exists(_ path: String) -> Bool { machine.files[path] != nil || machine.disk.exists(absolute(path)) }

    func rename(_ path: String, to newPath: String) -> Int32 {
        machine.disk.rename(absolute(path), to: absolute(newPath))
    }

    func removeFile(at path: String) -> Int32 {
        guard machine.files[path] == nil else {
            machine.removeFile(at: path)
            return 0
        }
        return machine.disk.remove(absolute(path))
    }

    func syncDirectory(_ path: String) -> Int32 { machine.disk.syncDirectory(absolute(path)) }

    // MARK: File events

    func openFileWatcher() -> Int32 { add(FileEventQueue(on: machine.disk)) }

    func watch(_ path: String, with descriptor: Int32, for mask: UInt32) -> Int32 {
        (description(of: descriptor) as? FileEventQueue)?.watch(absolute(path), for: mask) ?? -1
    }

    func unwatch(_ number: Int32, with descriptor: Int32) {
        (description(of: descriptor) as? FileEventQueue)?.unwatch(number)
    }
}
