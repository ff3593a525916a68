internal import CShims
internal import Glibc
internal import Synchronization

/// The memory of a flight: a page that describes it, a list of names, and a ring of events.
///
/// All numbers are 64 bits long and in the byte order of the machine. The loop's thread writes; any thread may read,
/// and so may any process if the memory is a file's. A name or an event is complete before it is counted.
final class FlightMemory: Sendable {
    /// The indices of the numbers in the first page.
    enum Field: Int {
        case mark, events, nameBytes, process, wallTime, loopTime
        case written, namesUsed, titleLength
    }

    static let pageSize = 4096
    static let mark: UInt64 = 0x3330_5448_4749_4c46  // "FLIGHT03"
    static let eventSize = 3 * MemoryLayout<UInt64>.size
    /// The offset of the title in the first page, and its greatest length in bytes.
    static let (titleStart, longestTitle) = (128, 256)

    let size: Int
    let events: Int
    let nameBytes: Int
    // Unsafe, because it is a pointer: to memory that lives as long as this object and is read and written atomically,
    // word by word.
    private nonisolated(unsafe) let base: UnsafeMutableRawPointer

    /// Maps the file at `path`, or memory without a file. `nameBytes` is a multiple of 8.
    init(events: Int, nameBytes: Int, path: String?) throws(FlightError) {
        (self.events, self.nameBytes) = (events, nameBytes)
        size = Self.pageSize + nameBytes + events * Self.eventSize
        var descriptor: Int32 = -1
        defer { if descriptor >= 0 { close(descriptor) } }
        if let path {
            // The flight of the previous process may show why that process ended.
            rename(path, path + ".1")
            descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else { throw .file(path, errno: errno) }
            // Allocated now: a page for which the file system has no room would end the process later.
            let status = posix_fallocate(descriptor, 0, off_t(size))
            guard status == 0 else { throw .file(path, errno: status) }
        }
        let flags = descriptor < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED
        guard let base = mmap(nil, size, PROT_READ | PROT_WRITE, flags, descriptor, 0), base != MAP_FAILED else {
            throw .file(path ?? "memory", errno: errno)
        }
        self.base = base
        // Another program may shorten the file.
        if let path,
            let file = rlk_make_mapped_file("\(path): the file of the flight is lost; the loop continues without it\n")
        {
            rlk_guard_mapping(file, base, size)
            rlk_free_mapped_file(file)
        }
        self[.mark] = Self.mark
        (self[.events], self[.nameBytes]) = (UInt64(events), UInt64(nameBytes))
    }

    deinit {
        rlk_unguard_mapping(base)
        munmap(base, size)
    }

    private func word(at offset: Int) -> UnsafeMutablePointer<Atomic<UInt64>> {
        assert(offset >= 0 && offset % 8 == 0 && offset <= size, "a word is not in the memory of a flight")
        return (base + offset).assumingMemoryBound(to: Atomic<UInt64>.self)
    }

    subscript(field: Field) -> UInt64 {
        get { word(at: field.rawValue * 8).pointee.load(ordering: .acquiring) }
        set { word(at: field.rawValue * 8).pointee.store(newValue, ordering: .releasing) }
    }

    /// Writes events one after another. Does not keep the memory alive.
    ///
    /// Unsafe: it advances a pointer, because finding the place of each event from its number took fifteen of the
    /// hundred instructions for an event.
    struct Writer {
        typealias Word = UnsafeMutablePointer<Atomic<UInt64>>
        private var next: Word
        private let (start, end, counter): (Word, Word, Word)
        private var written: UInt64 = 0

        /// Creates a writer that begins with the first place of the ring.
        init(_ memory: FlightMemory) {
            let ring = FlightMemory.pageSize + memory.nameBytes
            start = memory.word(at: ring)
            end = memory.word(at: ring + memory.events * FlightMemory.eventSize)
            counter = memory.word(at: Field.written.rawValue * 8)
            next = start
        }

        /// Writes an event, and counts it when it is complete.
        @inline(__always)
        mutating func write(_ event: FlightEvent) {
            let (place, count) = (next, written &+ 1)
            assert(place >= start && place + 3 <= end, "an event is not in the ring")
            place[0].store(event.words.0, ordering: .relaxed)
            place[1].store(event.words.1, ordering: .relaxed)
            place[2].store(event.words.2, ordering: .relaxed)
            counter.pointee.store(count, ordering: .releasing)
            (next, written) = (place + 3 == end ? start : place + 3, count)
        }
    }

    /// Writes bytes, eight at a time, into a part that is not counted yet.
    func write(_ bytes: [UInt8], at offset: Int) {
        assert(offset + bytes.count <= size, "text goes beyond the memory of a flight")
        for start in stride(from: 0, to: bytes.count, by: 8) {
            var value: UInt64 = 0
            for (index, byte) in bytes[start..<min(start + 8, bytes.count)].enumerated() {
                value |= UInt64(byte) << UInt64(8 * index)
            }
            word(at: offset + start).pointee.store(value.littleEndian, ordering: .relaxed)
        }
    }

    /// Returns a copy, perhaps made while the loop runs; `written` shows which events were overwritten meanwhile.
    func copy() -> (bytes: [UInt8], written: UInt64) {
        let bytes = [UInt8](unsafeUninitializedCapacity: size) { room, count in
            let words = UnsafeMutableRawBufferPointer(room).assumingMemoryBound(to: UInt64.self)
            // The counts first: everything that they count is complete.
            for index in 0..<size / 8 { words[index] = word(at: index * 8).pointee.load(ordering: .acquiring) }
            count = size
        }
        return (bytes, self[.written])
    }
}

/// The reason why a flight cannot be recorded or read. `Sendable`.
public enum FlightError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The system refuses a file, or memory, with this error.
    case file(String, errno: Int32)
    /// The bytes are not a flight, or a flight of another version.
    case notAFlight

    public var description: String {
        switch self {
        case .file(let path, let reason): "\(path): \(String(cString: strerror(reason))) (errno \(reason))"
        case .notAFlight: "not a flight of a loop, or recorded by another version of RunLoopKit"
        }
    }
}
