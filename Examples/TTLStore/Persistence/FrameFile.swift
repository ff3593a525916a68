import Glibc

/// A file of frames that is being written. One thread at a time may use it.
///
/// A new file is written beside its place, under a name that nobody else may have taken, and gets its place when it is
/// whole and on the disk.
final class FrameFile: @unchecked Sendable {
    let path: String
    /// How many bytes of it are whole frames.
    private(set) var length: Int
    private let descriptor: Int32
    private var sum: UInt32
    private var temporary: String?

    /// Begins a new file. A leftover of a process that was killed is replaced: whoever calls this has the lock.
    init(replacing path: String, _ kind: Frame.Kind) throws(DiskError) {
        self.path = path
        let temporary = FrameFile.temporary(of: path)
        unlink(temporary)
        descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw DiskError("open \(temporary)") }
        self.temporary = temporary
        (length, sum) = (0, 0)
        try write([Array(kind.rawValue.utf8)])
    }

    /// Goes on with a file, after the frames that are whole; what comes behind them is cut off.
    init(appendingTo path: String, _ extent: Frame.Extent) throws(DiskError) {
        self.path = path
        (length, sum) = (extent.end, extent.sum)
        descriptor = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { throw DiskError("open \(path)") }
        try truncate()
        try sync()
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
        if let temporary { unlink(temporary) }
    }

    static func temporary(of path: String) -> String { path + ".tmp" }

    /// Appends a frame. If that fails, the file is as it was.
    func append(_ changes: [UInt8]) throws(DiskError) {
        let next = changes.withUnsafeBytes { Checksum.of($0, after: sum) }
        try write([Frame.head(length: changes.count, sum: next), changes])
        sum = next
    }

    /// Appends the end of a snapshot.
    func appendEnd() throws(DiskError) {
        try write([Frame.head(length: 0, sum: sum)])
    }

    private func write(_ pieces: [[UInt8]]) throws(DiskError) {
        let start = length
        for piece in pieces {
            var written = 0
            while written < piece.count {
                let count = piece.withUnsafeBytes {
                    pwrite(descriptor, $0.baseAddress! + written, $0.count - written, off_t(length))
                }
                if count < 0, errno == EINTR { continue }
                guard count > 0 else {
                    let error = DiskError("write \(temporary ?? path)", count < 0 ? errno : ENOSPC)
                    length = start
                    try truncate()
                    throw error
                }
                written += count
                length += count
            }
        }
    }

    private func truncate() throws(DiskError) {
        guard ftruncate(descriptor, off_t(length)) == 0 else { throw DiskError("truncate \(path)", isLoss: true) }
    }

    /// Waits until all of it is on the disk. After an error nobody knows what is, and to write it again does not help.
    func sync() throws(DiskError) {
        guard fdatasync(descriptor) == 0 else { throw DiskError("sync \(temporary ?? path)", isLoss: true) }
    }

    /// Gives a new file its place, once it is on the disk.
    func install() throws(DiskError) {
        try sync()
        guard let temporary else { return }
        guard rename(temporary, path) == 0 else { throw DiskError("rename \(temporary) to \(path)") }
        self.temporary = nil
        // The new name is safe only when its directory is.
        let directory = directory(of: path)
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw DiskError("open \(directory)") }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw DiskError("sync \(directory)") }
    }
}

/// The directory that a file is in.
func directory(of path: String) -> String {
    path.contains("/") ? String(path[..<path.lastIndex(of: "/")!]) + "/" : "."
}

/// Keeps every other process away from a file, as long as it lives.
final class FileLock {
    private let descriptor: Int32

    /// - Throws: if another process has the lock, or if there can be none, as in a directory that is missing.
    init(for path: String) throws(DiskError) {
        let directory = directory(of: path)
        guard access(directory, F_OK) == 0 else { throw DiskError("the directory \(directory) of \(path)") }
        let name = path + ".lock"
        descriptor = open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw DiskError("open \(name)") }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            throw DiskError("another process uses \(path); lock \(name)")
        }
        // Of a process that was killed.
        unlink(FrameFile.temporary(of: path))
    }

    deinit {
        guard descriptor >= 0 else { return }
        // A child that is just being started may have the descriptor too for a moment.
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }
}

/// A file's bytes, in place.
struct MappedFile: ~Copyable {
    let bytes: UnsafeRawBufferPointer

    /// `nil` if there is no such file.
    init?(_ path: String) throws(DiskError) {
        let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw DiskError("open \(path)")
        }
        defer { close(descriptor) }
        var state = stat()
        guard fstat(descriptor, &state) == 0 else { throw DiskError("look at \(path)") }
        guard state.st_mode & S_IFMT == S_IFREG else { throw DiskError("read \(path)", EINVAL) }
        let size = Int(state.st_size)
        guard size > 0 else {
            bytes = UnsafeRawBufferPointer(start: nil, count: 0)
            return
        }
        let memory = mmap(nil, size, PROT_READ, MAP_PRIVATE, descriptor, 0)
        guard let memory, memory != MAP_FAILED else { throw DiskError("map \(path)") }
        bytes = UnsafeRawBufferPointer(start: memory, count: size)
    }

    deinit {
        if let memory = bytes.baseAddress { munmap(UnsafeMutableRawPointer(mutating: memory), bytes.count) }
    }
}
