internal import RunLoopCore

/// Writes the bytes of a tape into the chunks of a record. Used only on the tape's thread.
///
/// The last chunk is memory of the file, so that the record is complete whichever way the process ends.
struct TapeWriter {
    private let file: RecordFile
    private let tape: UInt32
    private var tail: UnsafeMutableRawBufferPointer?
    private var hasEnded = false
    private var number: UInt64 = 0
    private var position = RecordLayout.chunkHead
    private(set) var check: TapeCheck

    init(_ file: RecordFile, tape: UInt32) {
        (self.file, self.tape, check) = (file, tape, TapeCheck(ofTape: tape))
    }

    /// Ends the writing.
    mutating func end() {
        if let tail { file.release(tail) }
        (tail, hasEnded) = (nil, true)
    }

    /// Begins an event, of which `count` bytes are put one by one.
    ///
    /// - Returns: `false` if the record has ended.
    @inline(__always)
    mutating func begin(_ count: Int) -> Bool {
        if let tail, tail.count - position >= count { return true }
        return nextChunk()
    }

    @inline(never)
    private mutating func nextChunk() -> Bool {
        guard !hasEnded else { return false }
        guard let tail else {
            tail = file.makeTail(tape: tape)
            hasEnded = tail == nil
            return !hasEnded
        }
        // Perhaps within an event.
        commit()
        guard file.append(tail) else {
            end()
            return false
        }
        number += 1
        position = RecordLayout.chunkHead
        // Until then it is a second copy of the previous chunk.
        commit()
        return true
    }

    /// Makes all bytes put so far part of the record.
    @inline(__always)
    func commit() {
        let state = ChunkState(number: number, used: position, sum: check.short)
        tail?.storeBytes(
            of: state.word, toByteOffset: RecordLayout.ChunkField.state.rawValue * 8, as: UInt64.self)
    }

    @inline(__always)
    mutating func put(_ byte: UInt8) {
        // Unsafe: `begin` has made room, and the checks of the buffer took a third of an event's instructions.
        tail.unsafelyUnwrapped.baseAddress.unsafelyUnwrapped.storeBytes(
            of: byte, toByteOffset: position, as: UInt8.self)
        position &+= 1
        check.add(byte)
    }

    /// Puts a number, in at most ten bytes.
    @inline(__always)
    mutating func put(_ number: UInt64) {
        var rest = number
        while rest >= 0x80 {
            put(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        put(UInt8(truncatingIfNeeded: rest))
    }

    /// Puts any number of bytes, across the ends of chunks.
    mutating func put(_ bytes: UnsafeRawBufferPointer) {
        var rest = bytes
        while !rest.isEmpty {
            guard begin(1), let tail else { return }
            let count = min(rest.count, tail.count - position)
            let piece = UnsafeRawBufferPointer(rebasing: rest[..<count])
            UnsafeMutableRawBufferPointer(rebasing: tail[position..<position + count]).copyMemory(from: piece)
            // Piece by piece, so that the sum at the end of a chunk covers the bytes up to there.
            check.add(piece)
            position += count
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        }
    }
}
