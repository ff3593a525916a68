/// Reads the bytes of a tape, one chunk after another. Past the end there are only zeros.
struct TapeReader: ByteSource {
    private let chunks: [UnsafeRawBufferPointer]
    private var chunk = 0
    private var position = 0
    private(set) var remaining: UInt64
    /// `true` once the end has been passed: the process ended within an event.
    private(set) var isOver = false
    private(set) var check: TapeCheck

    init(_ tape: RecordedTape) {
        chunks = tape.chunks.filter { !$0.isEmpty }
        check = TapeCheck(ofTape: tape.number)
        remaining = chunks.reduce(0) { $0 + UInt64($1.count) }
    }

    var isAtEnd: Bool { chunk >= chunks.count }

    /// The next byte, which is not consumed; 0 at the end.
    var next: UInt8 { isAtEnd ? 0 : chunks[chunk][position] }

    mutating func byte() -> UInt8 {
        guard !isAtEnd else {
            isOver = true
            return 0
        }
        let byte = chunks[chunk][position]
        advance(1)
        check.add(byte)
        return byte
    }

    /// Advances within a chunk, or to its end.
    private mutating func advance(_ count: Int) {
        position += count
        remaining -= UInt64(count)
        if position == chunks[chunk].count { (chunk, position) = (chunk + 1, 0) }
    }

    /// Passes on `count` consecutive bytes piece by piece, as they lie in chunks.
    private mutating func pass(_ count: Int, _ take: (UnsafeRawBufferPointer) -> Void) {
        var rest = count
        while rest > 0 {
            guard !isAtEnd else {
                isOver = true
                return
            }
            let step = min(rest, chunks[chunk].count - position)
            let piece = UnsafeRawBufferPointer(rebasing: chunks[chunk][position..<position + step])
            take(piece)
            check.add(piece)
            advance(step)
            rest -= step
        }
    }

    /// Fills memory with consecutive bytes.
    mutating func fill(_ room: UnsafeMutableRawBufferPointer) {
        var filled = 0
        pass(room.count) { piece in
            UnsafeMutableRawBufferPointer(rebasing: room[filled..<filled + piece.count]).copyMemory(from: piece)
            filled += piece.count
        }
    }

    /// Returns the bytes of a block, which begins with their number.
    mutating func block() -> [UInt8] { bytes(Int(clamping: unsigned())) }

    /// Returns `count` consecutive bytes.
    mutating func bytes(_ count: Int) -> [UInt8] {
        guard count <= remaining else {
            skip(count)
            return []
        }
        return [UInt8](unsafeUninitializedCapacity: count) { room, initialized in
            initialized = count
            fill(UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(room)[..<count]))
        }
    }

    /// Skips `count` consecutive bytes.
    mutating func skip(_ count: Int) { pass(count) { _ in } }

    /// Returns a sum of 16 bits.
    mutating func sum() -> UInt16 { UInt16(byte()) | UInt16(byte()) << 8 }
}
