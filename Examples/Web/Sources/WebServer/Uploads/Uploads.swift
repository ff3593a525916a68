internal import Glibc
internal import RunLoopHTTP
internal import RunLoopKit
internal import RunLoopUnix
internal import Synchronization

/// The directory of uploaded files. A name leads to a complete file, on the disk, or to none. Any thread.
///
/// A file grows under a hidden name, locked, so that another daemon of the same directory leaves it alone.
final class Uploads: Sendable {
    private let directory: String
    private let disks: LoopGroup
    private let begun = Atomic(0)
    private let writing = Mutex((count: 0, ended: [@Sendable () -> Void]()))

    /// The name of a file: letters, digits, dots, dashes and underscores, without a dot in front.
    struct Name: Sendable {
        let text: String

        /// - Throws: a refusal if a file must not have this name.
        init(_ text: String) throws(HTTPServer.Refusal) {
            let isPlain = text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
                case UInt8(ascii: "0")...UInt8(ascii: "9"): true
                default: "._-".utf8.contains(byte)
                }
            }
            guard isPlain, (1...128).contains(text.utf8.count), !text.hasPrefix(".") else {
                throw HTTPServer.Refusal(
                    .badRequest, "a name has up to 128 letters, digits, dots, dashes or underscores")
            }
            self.text = text
        }
    }

    /// - Parameter disks: the loops that wait for the disk.
    init(in directory: String, _ disks: LoopGroup) {
        (self.directory, self.disks) = (directory, disks)
    }

    private static let prefix = ".upload-"

    /// Makes the directory, and removes the files that a crash has left incomplete. Blocks for the disk.
    func prepare() throws {
        let disk = Disk.current
        if !disk.exists(directory) {
            try disk.createDirectory(directory)
            try disk.syncDirectory(of: directory)
        }
        for name in try disk.contentsOfDirectory(directory) where name.hasPrefix(Self.prefix) {
            let path = "\(directory)/\(name)"
            // Another daemon of this directory has locked the files that it writes.
            guard let file = try? disk.open(path, .readingAndWritingLocked) else { continue }
            try withExtendedLifetime(file) { try disk.remove(path) }
        }
    }

    // MARK: Writing

    /// Writes a body to the disk as it comes, and names the file when it is complete and safe.
    ///
    /// - Returns: the number of bytes.
    func store(_ body: HTTPBody, as name: Name) async throws -> Int {
        writing.withLock { $0.count += 1 }
        defer { hasWritten() }
        let (disk, path) = (nextDisk, "\(directory)/\(name.text)")
        let file = try await disk.result { try self.makeFile() }
        do {
            var count = 0
            for try await piece in body {
                try await disk.result { [count] in try file.write(Array(piece.readableBytesView), at: count) }
                count += piece.readableBytes
            }
            try await disk.result {
                try file.sync()
                try Disk.current.rename(file.path, to: path)
                try Disk.current.syncDirectory(of: path)
            }
            return count
        } catch {
            try? await disk.result { try Disk.current.remove(file.path) }
            throw error
        }
    }

    /// Opens a new file under a hidden name. Blocks for the disk.
    private func makeFile() throws(SystemError) -> File {
        while true {
            let number = begun.wrappingAdd(1, ordering: .relaxed).newValue
            do {
                let file = try Disk.current.open("\(directory)/\(Self.prefix)\(number)", .readingAndWritingLocked)
                try file.truncate(to: 0)
                return file
            } catch  where error.errno == EWOULDBLOCK {
                // Another daemon's file.
            }
        }
    }

    private func hasWritten() {
        let ended = writing.withLock { writing in
            writing.count -= 1
            defer { if writing.count == 0 { writing.ended = [] } }
            return writing.count == 0 ? writing.ended : []
        }
        for body in ended { body() }
    }

    /// Calls `body` when no file is incomplete.
    func whenWritten(_ body: @escaping @Sendable () -> Void) {
        let isWriting = writing.withLock { writing in
            if writing.count > 0 { writing.ended.append(body) }
            return writing.count > 0
        }
        if !isWriting { body() }
    }

    // MARK: Reading

    /// The size of a piece, of which the server keeps three for a client that does not read.
    private static let piece = 32 * 1024

    /// Opens a complete file.
    ///
    /// - Returns: the answer with it, which is read as fast as the client takes it.
    func open(_ name: Name) async throws -> HTTPServer.Response {
        let (disk, path) = (nextDisk, "\(directory)/\(name.text)")
        let (file, length) = try await disk.result {
            do {
                let file = try Disk.current.open(path, .reading)
                return (file, try file.withContents { $0.count })
            } catch let error as SystemError where [ENOENT, EINVAL, ELOOP].contains(error.errno) {
                // No name, or not the name of a regular file.
                throw HTTPServer.Refusal(.notFound, "there is no upload \(name.text)")
            }
        }
        return .stream(length: length, type: "application/octet-stream") { writer in
            for offset in stride(from: 0, to: length, by: Self.piece) {
                // A file that has become shorter ends too early, and so does the answer.
                // The array is copied on the disk's thread, which may be a whole round of clients ahead of the loop.
                try await writer.write(
                    try await disk.result { ByteBuffer(bytes: try file.read(Self.piece, at: offset)) })
            }
        }
    }

    private var nextDisk: RunLoop.Remote {
        disks.loops[begun.load(ordering: .relaxed) % disks.loops.count]
    }
}

extension RunLoop.Remote {
    /// Runs a block on the thread of this loop, and waits for its result.
    fileprivate func result<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withUnsafeThrowingContinuation { waiting in
            let isPosted = perform { _ in waiting.resume(with: Result { try body() }) }
            if !isPosted { waiting.resume(throwing: CancellationError()) }
        }
    }
}
