internal import Glibc
internal import RunLoopUnix

extension Process {
    /// The path from the root.
    private func absolute(_ path: String) -> String {
        path.isEmpty ? path : Directories.absolute(path, from: workingDirectory)
    }

    private var disk: SimulatedDisk { machine.disk }
    private func file(_ descriptor: Int32) -> OpenFile? { descriptors[descriptor] as? OpenFile ?? failure(EBADF) }

    func open(_ path: String, flags: Int32) -> Int32 {
        guard let node = disk.open(absolute(path), flags: flags) else { return -1 }
        return descriptors.add(OpenFile(node, on: disk, access: flags & O_ACCMODE))
    }

    func lock(_ descriptor: Int32) -> Int32 { file(descriptor)?.lock() ?? -1 }
    func unlock(_ descriptor: Int32) { file(descriptor)?.unlock() }

    func leads(_ path: String, to descriptor: Int32) -> Bool {
        file(descriptor).map { disk.node(at: path) === $0.node } ?? false
    }

    func read(_ descriptor: Int32, into room: UnsafeMutableRawBufferPointer, at offset: Int) -> Int {
        guard let file = file(descriptor) else { return -1 }
        guard offset >= 0 else { return failure(EINVAL) }
        guard file.isReadable else { return failure(EBADF) }
        guard let content = disk.read(file.node) else { return -1 }
        let rest = content.dropFirst(offset).prefix(room.count)
        room.copyBytes(from: rest)
        return rest.count
    }

    func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, at offset: Int) -> Int {
        guard let file = file(descriptor) else { return -1 }
        guard file.isWritable else { return failure(EBADF) }
        return disk.write(bytes, to: file.node, at: offset)
    }

    func truncate(_ descriptor: Int32, to length: Int) -> Int32 {
        guard let file = file(descriptor) else { return -1 }
        return file.isWritable ? disk.truncate(file.node, to: length) : failure(EINVAL)
    }

    func sync(_ descriptor: Int32) -> Int32 { file(descriptor).map { disk.sync($0.node) } ?? -1 }

    func map(_ descriptor: Int32) -> UnsafeRawBufferPointer? {
        guard let file = file(descriptor) else { return nil }
        guard file.isReadable, !file.node.isDirectory else {
            return failure(file.node.isDirectory ? EINVAL : EACCES)
        }
        guard let content = disk.read(file.node) else { return nil }
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: content.count, alignment: 1)
        copy.copyBytes(from: content)
        return UnsafeRawBufferPointer(copy)
    }

    func unmap(_ contents: UnsafeRawBufferPointer) { contents.deallocate() }
    func exists(_ path: String) -> Bool { machine.sockets.files[path] != nil || disk.exists(absolute(path)) }
    func rename(_ path: String, to newPath: String) -> Int32 { disk.rename(absolute(path), to: absolute(newPath)) }

    func removeFile(at path: String) -> Int32 {
        machine.sockets.removePath(path) ? 0 : disk.remove(absolute(path))
    }

    func syncDirectory(_ path: String) -> Int32 { disk.syncDirectory(absolute(path)) }

    // MARK: File events

    func openFileWatcher() -> Int32 { descriptors.add(FileEventQueue(on: disk)) }

    func watch(_ path: String, with descriptor: Int32, for mask: UInt32) -> Int32 {
        (descriptors[descriptor] as? FileEventQueue)?.watch(absolute(path), for: mask) ?? -1
    }

    func unwatch(_ number: Int32, with descriptor: Int32) {
        (descriptors[descriptor] as? FileEventQueue)?.unwatch(number)
    }
}
