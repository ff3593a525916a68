import Glibc
import RunLoopKit

/// The store in a file: written beside it, synced, and renamed over it, so that the file is always a whole one.
struct Snapshot {
    let path: String

    struct Failure: Error, CustomStringConvertible {
        let description: String

        init(_ what: String, _ reason: Int32 = errno) {
            description = "\(what): \(String(cString: strerror(reason)))"
        }

        init(malformed path: String) {
            description = "\(path) is not a whole snapshot"
        }
    }

    private static let header = Array("TTLSTORE 1\n".utf8)

    // MARK: Writing

    /// Writes all of the store. If that fails, the old file is as it was.
    func write(_ store: Store, on loop: RunLoop) throws {
        let temporary = "\(path).\(getpid()).tmp"
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Failure("open \(temporary)") }
        do {
            defer { close(descriptor) }
            try writeRecords(of: store, on: loop, into: descriptor)
            guard fsync(descriptor) == 0 else { throw Failure("sync \(temporary)") }
        } catch {
            unlink(temporary)
            throw error
        }
        guard rename(temporary, path) == 0 else {
            let failure = Failure("rename \(temporary) to \(path)")
            unlink(temporary)
            throw failure
        }
        try syncDirectory()
    }

    private func writeRecords(of store: Store, on loop: RunLoop, into descriptor: Int32) throws {
        var buffer = Snapshot.header
        let now = (loop: loop.now, wall: wallClock())
        try store.forEach { key, value, expiry in
            append(UInt64(key.bytes.count), to: &buffer)
            append(UInt64(value.count), to: &buffer)
            // On the wall clock, which goes on while nobody runs; 0 for never.
            append(expiry.map { UInt64(max(1, now.wall + ($0.nanoseconds - now.loop.nanoseconds))) } ?? 0, to: &buffer)
            buffer += key.bytes
            buffer += value
            if buffer.count > 1 << 20 { try flush(&buffer, into: descriptor) }
        }
        // An end that no record can have tells a whole file from a part of one.
        append(UInt64.max, to: &buffer)
        append(UInt64(store.count), to: &buffer)
        try flush(&buffer, into: descriptor)
    }

    private func flush(_ buffer: inout [UInt8], into descriptor: Int32) throws {
        var written = 0
        while written < buffer.count {
            let count = buffer.withUnsafeBytes {
                Glibc.write(descriptor, $0.baseAddress! + written, $0.count - written)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw Failure("write the snapshot", count < 0 ? errno : ENOSPC) }
            written += count
        }
        buffer.removeAll(keepingCapacity: true)
    }

    private func append(_ number: UInt64, to buffer: inout [UInt8]) {
        withUnsafeBytes(of: number.littleEndian) { buffer.append(contentsOf: $0) }
    }

    /// The new name is safe only when its directory is.
    private func syncDirectory() throws {
        let directory = path.contains("/") ? String(path[..<path.lastIndex(of: "/")!]) + "/" : "."
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Failure("open \(directory)") }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw Failure("sync \(directory)") }
    }

    // MARK: Reading

    /// Loads the file into the store, but for what has expired meanwhile; without a file nothing.
    func load(into store: Store, on loop: RunLoop) throws {
        guard let bytes = try readAll() else { return }
        var reader = Reader(bytes: bytes)
        guard reader.take(Snapshot.header.count).map(Array.init) == Snapshot.header else {
            throw Failure(malformed: path)
        }
        let now = (loop: loop.now, wall: wallClock())
        var count: UInt64 = 0
        while true {
            guard let keySize = reader.number() else { throw Failure(malformed: path) }
            if keySize == .max { break }
            guard let valueSize = reader.number(), let expiry = reader.number(),
                let key = reader.take(Int(clamping: keySize)), let value = reader.take(Int(clamping: valueSize))
            else { throw Failure(malformed: path) }
            count += 1
            let left = expiry == 0 ? nil : Int64(clamping: expiry) - now.wall
            if let left, left <= 0 { continue }
            store.set(Key(Array(key)), Array(value), expiry: left.map { now.loop + .nanoseconds($0) })
        }
        guard reader.number() == count else { throw Failure(malformed: path) }
    }

    private func readAll() throws -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw Failure("open \(path)")
        }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 1 << 20)
        while true {
            let count = read(descriptor, &piece, piece.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Failure("read \(path)") }
            if count == 0 { return bytes }
            bytes += piece[..<count]
        }
    }

    private struct Reader {
        let bytes: [UInt8]
        var position = 0

        mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
            guard count >= 0, bytes.count - position >= count else { return nil }
            defer { position += count }
            return bytes[position..<position + count]
        }

        mutating func number() -> UInt64? {
            take(8).map { $0.reversed().reduce(0) { $0 << 8 | UInt64($1) } }
        }
    }

    private func wallClock() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
