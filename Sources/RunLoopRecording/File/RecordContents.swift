internal import Glibc
internal import RunLoopCore

/// A record as it is read: its head, and the chunks of each tape. Any thread.
final class RecordContents: Sendable {
    let process: Int
    let wallTime: RunLoop.WallTime
    let seeds: (UInt64, UInt64)
    let keepsPayloads: Bool
    let keepsOutput: Bool
    let foreignCalls: Int
    let arguments: [String]
    // Unsafe, because they are pointers: to memory that nobody changes, which is unmapped with this object.
    private nonisolated(unsafe) let files: [UnsafeRawBufferPointer]
    nonisolated(unsafe) let tapes: [UInt32: [UnsafeRawBufferPointer]]

    init(_ path: String) throws(RecordError) {
        var files: [UnsafeRawBufferPointer] = []
        var failure: RecordError?
        var chunks: [UInt32: [UInt64: UnsafeRawBufferPointer]] = [:]
        repeat {
            do throws(RecordError) {
                let file = try Self.map(RecordLayout.path(path, part: files.count + 1))
                files.append(file)
                try Self.collect(file, part: files.count, path, into: &chunks)
            } catch {
                failure = error
            }
        } while failure == nil
        self.files = files
        tapes = chunks.mapValues { numbered in
            // Those behind a gap belong to no known place.
            (0..<UInt64(numbered.count)).map { numbered[$0] }.prefix { $0 != nil }.compactMap(\.self)
        }
        func field(_ field: RecordLayout.Field) -> UInt64 {
            files.first.map { $0.loadUnaligned(fromByteOffset: field.rawValue * 8, as: UInt64.self) } ?? 0
        }
        process = Int(clamping: field(.process))
        wallTime = RunLoop.WallTime(nanoseconds: Int64(bitPattern: field(.wallTime)))
        seeds = (field(.seed0), field(.seed1))
        keepsPayloads = field(.keepsPayloads) != 0
        keepsOutput = field(.keepsOutput) != 0
        foreignCalls = Int(clamping: field(.foreignCalls))
        let length = min(Int(clamping: field(.argumentsLength)), RecordLayout.pageSize - RecordLayout.argumentsStart)
        arguments =
            files.first.map { file in
                file[RecordLayout.argumentsStart..<RecordLayout.argumentsStart + length].split(separator: 0)
                    .map { String(decoding: $0, as: UTF8.self) }
            } ?? []
        // A part that is not there ends the list, unless it is the first.
        switch failure! {
        case .file(_, errno: ENOENT) where !files.isEmpty: return
        case let error: throw error
        }
    }

    deinit {
        for file in files { munmap(UnsafeMutableRawPointer(mutating: file.baseAddress), file.count) }
    }

    private static func map(_ path: String) throws(RecordError) -> UnsafeRawBufferPointer {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .file(path, errno: errno) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .file(path, errno: errno) }
        let size = Int(status.st_size)
        guard status.st_mode & S_IFMT == S_IFREG, size >= RecordLayout.pageSize else { throw .notARecord(path) }
        guard let memory = mmap(nil, size, PROT_READ, MAP_PRIVATE, descriptor, 0), memory != MAP_FAILED else {
            throw .file(path, errno: errno)
        }
        return UnsafeRawBufferPointer(start: memory, count: size)
    }

    private static func collect(
        _ file: UnsafeRawBufferPointer, part: Int, _ path: String,
        into chunks: inout [UInt32: [UInt64: UnsafeRawBufferPointer]]
    ) throws(RecordError) {
        func word(_ offset: Int) -> UInt64 { file.loadUnaligned(fromByteOffset: offset, as: UInt64.self) }
        guard word(0) == RecordLayout.mark, word(RecordLayout.Field.part.rawValue * 8) == UInt64(part),
            let size = Int(exactly: word(RecordLayout.Field.chunkSize.rawValue * 8)), size > RecordLayout.chunkHead,
            size <= 1 << 30
        else { throw .notARecord(RecordLayout.path(path, part: part)) }
        for start in stride(from: RecordLayout.pageSize, through: file.count - size, by: size) {
            func field(_ field: RecordLayout.ChunkField) -> UInt64 { word(start + field.rawValue * 8) }
            // The last one may have been made and not described.
            let isTail = field(.mark) == RecordLayout.tailMark
            guard isTail || field(.mark) == RecordLayout.chunkMark, let tape = UInt32(exactly: field(.tape)),
                case let (number, used) = (field(.numberAndUsed) >> 32, Int(field(.numberAndUsed) & 0xffff_ffff)),
                (RecordLayout.chunkHead...size).contains(used)
            else { continue }
            let content = UnsafeRawBufferPointer(rebasing: file[start + RecordLayout.chunkHead..<start + used])
            // A process that was killed while it moved a tail has left the whole of it.
            if isTail || chunks[tape]?[number] == nil {
                chunks[tape, default: [:]][number] = content
            }
        }
    }
}
