/// The layout of a record's file: a page that describes the run, and chunks, each of one thread's tape.
///
/// Numbers have 64 bits, in the byte order of the machine.
enum RecordLayout {
    static let pageSize = 4096
    static let mark: UInt64 = 0x3230_4452_4f43_4552  // "RECORD02"
    static let chunkMark: UInt64 = 0x4b4e_5548_43  // "CHUNK"
    /// The mark of a tape's last chunk, which is mapped while the thread writes it, and moved behind the others when
    /// full.
    static let tailMark: UInt64 = 0x4c49_4154  // "TAIL"

    /// The numbers of the first page, by their places.
    enum Field: Int {
        case mark, part, chunkSize, process, life, wallTime, seed0, seed1, keepsPayloads, keepsOutput, argumentsLength
        /// The sum of the numbers above and of the arguments, which do not change.
        case check
        /// The least size of the file, whether another part follows, and a ``RecordEnd``.
        case size, isContinued, end
        case foreignCalls
    }
    /// The number of the tape of the look-ups' answers, above the numbers of all threads.
    static let lookUps: UInt32 = .max - 1

    /// The offset of the program's arguments in the first page, each ending in a zero byte.
    static let argumentsStart = 256

    /// The numbers at the beginning of a chunk.
    enum ChunkField: Int {
        case mark, tape
        /// A ``ChunkState``.
        case state
    }
    static let chunkHead = 64
    /// The largest number of bytes that a ``ChunkState`` can count.
    static let largestChunk = 1 << 20 - 1

    /// Returns the path of a part; the first part has the name of the record.
    static func path(_ path: String, part: Int) -> String { part == 1 ? path : "\(path).\(part)" }

    /// Returns the sum of the unchanging parts of a first page.
    static func check(ofHead head: UnsafeRawBufferPointer, argumentsLength: Int) -> UInt64 {
        var check = TapeCheck()
        check.add(UnsafeRawBufferPointer(rebasing: head[..<(Field.check.rawValue * 8)]))
        check.add(UnsafeRawBufferPointer(rebasing: head[argumentsStart..<argumentsStart + argumentsLength]))
        return check.value
    }
}

/// The number of a chunk in its tape, the number of its used bytes, and the sum of the tape up to there.
///
/// The three are in one word, because a process may be killed, or its record copied, between any two instructions.
struct ChunkState {
    var number: UInt64
    var used: Int
    var sum: UInt16

    init(number: UInt64, used: Int, sum: UInt16) {
        (self.number, self.used, self.sum) = (number, used, sum)
    }

    init(word: UInt64) {
        (number, used, sum) = (word >> 36, Int(word >> 16 & 0xf_ffff), UInt16(truncatingIfNeeded: word))
    }

    @inline(__always)
    var word: UInt64 { number << 36 | UInt64(truncatingIfNeeded: used) << 16 | UInt64(sum) }
}
