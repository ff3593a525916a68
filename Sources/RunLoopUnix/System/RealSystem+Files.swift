internal import Glibc

extension RealSystem {
    // MARK: Paths of sockets

    func socketFile(at path: String) -> SocketFile? {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { return nil }
        return SocketFile(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
    }

    func setPermissions(_ permissions: UInt32, of descriptor: Int32) -> Int32 {
        fchmod(descriptor, permissions)
    }

    func setPermissions(_ permissions: UInt32, at path: String) -> Int32 {
        fchmodat(AT_FDCWD, path, permissions, AT_SYMLINK_NOFOLLOW)
    }

    // MARK: Files

    func open(_ path: String, flags: Int32) -> Int32 {
        // O_NONBLOCK, because a FIFO would block the thread until its other end is opened.
        Glibc.open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0o600)
    }

    func lock(_ descriptor: Int32) -> Int32 { flock(descriptor, LOCK_EX | LOCK_NB) }

    func unlock(_ descriptor: Int32) {
        _ = flock(descriptor, LOCK_UN)
    }

    func leads(_ path: String, to descriptor: Int32) -> Bool {
        var (named, opened) = (stat(), stat())
        return lstat(path, &named) == 0 && fstat(descriptor, &opened) == 0 && named.st_dev == opened.st_dev
            && named.st_ino == opened.st_ino
    }

    func read(_ descriptor: Int32, into room: UnsafeMutableRawBufferPointer, at offset: Int) -> Int {
        pread(descriptor, room.baseAddress, room.count, off_t(offset))
    }

    func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, at offset: Int) -> Int {
        pwrite(descriptor, bytes.baseAddress, bytes.count, off_t(offset))
    }

    func size(of descriptor: Int32) -> Int {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return -1 }
        guard status.st_mode & S_IFMT == S_IFREG else {
            errno = EINVAL
            return -1
        }
        return Int(status.st_size)
    }

    func truncate(_ descriptor: Int32, to length: Int) -> Int32 { ftruncate(descriptor, off_t(length)) }

    func sync(_ descriptor: Int32) -> Int32 { fdatasync(descriptor) }

    func map(_ descriptor: Int32) -> UnsafeRawBufferPointer? {
        let size = size(of: descriptor)
        guard size >= 0 else { return nil }
        guard size > 0 else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        let memory = mmap(nil, size, PROT_READ, MAP_PRIVATE, descriptor, 0)
        return memory == MAP_FAILED ? nil : UnsafeRawBufferPointer(start: memory, count: size)
    }

    func unmap(_ contents: UnsafeRawBufferPointer) {
        if let memory = contents.baseAddress { munmap(UnsafeMutableRawPointer(mutating: memory), contents.count) }
    }

    func contentsOfFile(_ path: String, upTo most: Int) -> [UInt8]? {
        let file = Glibc.open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { Glibc.close(file) }
        guard size(of: file) >= 0 else { return nil }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 16 * 1024)
        while bytes.count <= most {
            let count = Glibc.read(file, &piece, piece.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return nil }
            if count == 0 { return bytes }
            bytes += piece.prefix(count)
        }
        return bytes
    }

    func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    func rename(_ path: String, to newPath: String) -> Int32 { Glibc.rename(path, newPath) }

    func removeFile(at path: String) -> Int32 { unlink(path) }

    func createDirectory(_ path: String) -> Int32 { mkdir(path, 0o700) }

    func removeDirectory(_ path: String) -> Int32 { rmdir(path) }

    func contentsOfDirectory(_ path: String) -> [String]? {
        guard let directory = opendir(path) else { return nil }
        defer { closedir(directory) }
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = readdir(directory) else { return errno == 0 ? names : nil }
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
    }

    func syncDirectory(_ path: String) -> Int32 {
        let descriptor = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return -1 }
        let status = fsync(descriptor)
        let reason = errno
        close(descriptor)
        errno = reason
        return status
    }

    // MARK: File events

    func openFileWatcher() -> Int32 { inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC)) }

    func watch(_ path: String, with descriptor: Int32, for mask: UInt32) -> Int32 {
        // Without the last bit, a second watch of the same file would silently replace the first.
        inotify_add_watch(descriptor, path, mask | UInt32(IN_MASK_CREATE))
    }

    func unwatch(_ number: Int32, with descriptor: Int32) {
        inotify_rm_watch(descriptor, number)
    }
}
