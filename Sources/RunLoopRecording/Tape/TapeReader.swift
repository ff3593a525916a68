/// Reads the bytes of a tape, one chunk after another. Behind the end there are only zeros.
struct TapeReader: ByteSource {
    private let chunks: [UnsafeRawBufferPointer]
    private var chunk = 0
    private var position = 0
    /// Whether the end has been passed: the process ended within an event.
    private(set) var isOver = false
    private(set) var check = TapeCheck()

    init(_ chunks: [UnsafeRawBufferPointer]) {
        self.chunks = chunks.filter { !$0.isEmpty }
    }

    var isAtEnd: Bool { chunk >= chunks.count }

    /// The next byte, which stays; 0 at the end.
    var next: UInt8 { isAtEnd ? 0 : chunks[chunk][position] }

    mutating func byte() -> UInt8 {
        guard !isAtEnd else {
            isOver = true
            return 0
        }
        let byte = chunks[chunk][position]
        position += 1
        if position == chunks[chunk].count { (chunk, position) = (chunk + 1, 0) }
        check.add(byte)
        return byte
    }

    /// Fills memory with bytes that were put together.
    mutating func fill(_ room: UnsafeMutableRawBufferPointer) {
        var filled = 0
        while filled < room.count {
            guard !isAtEnd else {
                isOver = true
                return
            }
            let count = min(room.count - filled, chunks[chunk].count - position)
            UnsafeMutableRawBufferPointer(rebasing: room[filled..<filled + count])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: chunks[chunk][position..<position + count]))
            filled += count
            position += count
            if position == chunks[chunk].count { (chunk, position) = (chunk + 1, 0) }
        }
        check.add(UnsafeRawBufferPointer(room))
    }

    /// The bytes of a block, which begins with their number.
    mutating func block() -> [UInt8] { bytes(Int(clamping: unsigned())) }

    /// Bytes that were put together.
    mutating func bytes(_ count: Int) -> [UInt8] {
        guard count <= remaining else {
            isOver = true
            return []
        }
        return [UInt8](unsafeUninitializedCapacity: count) { room, initialized in
            initialized = count
            fill(UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(room)[..<count]))
        }
    }

    /// Passes over bytes that were put together.
    mutating func skip(_ count: Int) {
        var rest = count
        while rest > 0, !isAtEnd {
            let step = min(rest, chunks[chunk].count - position)
            rest -= step
            position += step
            if position == chunks[chunk].count { (chunk, position) = (chunk + 1, 0) }
        }
        if rest > 0 { isOver = true }
    }

    var remaining: UInt64 {
        guard !isAtEnd else { return 0 }
        return UInt64(chunks[chunk...].reduce(-position) { $0 + $1.count })
    }
}
