internal import Glibc
internal import Synchronization

/// A file of a record, mapped: its first page, and the places of its chunks.
final class RecordPart {
    /// The memory of the file, which is unmapped with this object.
    private let file: UnsafeRawBufferPointer

    /// A place for a chunk.
    struct Place {
        let start: Int
        let tape: UInt32
        let state: ChunkState
        let isTail: Bool
        let content: UnsafeRawBufferPointer
    }

    init(_ path: String, part: Int) throws(RecordError) {
        let path = RecordLayout.path(path, part: part)
        file = try Self.map(path)
        let size = self[.chunkSize]
        guard self[.mark] == RecordLayout.mark, self[.part] == UInt64(part),
            (UInt64(RecordLayout.chunkHead) + 1...UInt64(RecordLayout.largestChunk)).contains(size)
        else { throw .notARecord(path) }
        let length = self[.argumentsLength]
        guard length <= RecordLayout.pageSize - RecordLayout.argumentsStart,
            self[.check] == RecordLayout.check(ofHead: file, argumentsLength: Int(length))
        else { throw .damaged(path, place: "in its first page") }
    }

    deinit { munmap(UnsafeMutableRawPointer(mutating: file.baseAddress), file.count) }

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

    var count: Int { file.count }
    private var chunkSize: Int { Int(self[.chunkSize]) }

    /// Returns a number, read once because the process may be writing it.
    private func word(_ offset: Int) -> UInt64 {
        UnsafeMutableRawPointer(mutating: file.baseAddress! + offset).assumingMemoryBound(to: Atomic<UInt64>.self)
            .pointee.load(ordering: .acquiring)
    }

    subscript(field: RecordLayout.Field) -> UInt64 { word(field.rawValue * 8) }

    var arguments: [String] {
        file[RecordLayout.argumentsStart..<RecordLayout.argumentsStart + Int(self[.argumentsLength])]
            .split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The places, in order; `nil` for a place that is not described.
    var places: [Place?] {
        stride(from: RecordLayout.pageSize, through: file.count - chunkSize, by: chunkSize).map { place(at: $0) }
    }

    private func place(at start: Int) -> Place? {
        func field(_ field: RecordLayout.ChunkField) -> UInt64 { word(start + field.rawValue * 8) }
        let state = ChunkState(word: field(.state))
        guard [RecordLayout.tailMark, RecordLayout.chunkMark].contains(field(.mark)),
            let tape = UInt32(exactly: field(.tape)), (RecordLayout.chunkHead...chunkSize).contains(state.used)
        else { return nil }
        let content = UnsafeRawBufferPointer(
            rebasing: file[start + RecordLayout.chunkHead..<start + state.used])
        return Place(
            start: start, tape: tape, state: state, isTail: field(.mark) == RecordLayout.tailMark, content: content)
    }

    /// Copies of the tails, which the process may be writing. A tail that it moves meanwhile is left out.
    var tails: [RecordTail] {
        places.compactMap(\.self).filter(\.isTail).compactMap { place in
            let tail = RecordTail(place)
            let state = ChunkState(word: word(place.start + RecordLayout.ChunkField.state.rawValue * 8))
            return state.number == place.state.number ? tail : nil
        }
    }
}

/// The copy of a tape's last chunk.
final class RecordTail {
    let tape: UInt32
    let state: ChunkState
    /// The bytes of the chunk, in memory of this object.
    let content: UnsafeRawBufferPointer

    init(_ place: RecordPart.Place) {
        (tape, state) = (place.tape, place.state)
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: place.content.count, alignment: 8)
        copy.copyMemory(from: place.content)
        content = UnsafeRawBufferPointer(copy)
    }

    deinit { content.deallocate() }
}
