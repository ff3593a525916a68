/// The parts of a record's file: a page that describes the run, and chunks, each of one thread's tape.
///
/// Numbers are 64 bits long and in the byte order of the machine.
enum RecordLayout {
    static let pageSize = 4096
    static let mark: UInt64 = 0x3130_4452_4f43_4552  // "RECORD01"
    static let chunkMark: UInt64 = 0x4b4e_5548_43  // "CHUNK"
    /// The mark of a tape's last chunk, which is mapped while the thread writes it, and moved behind the others when it is full.
    static let tailMark: UInt64 = 0x4c49_4154  // "TAIL"

    /// The numbers of the first page, by their places.
    enum Field: Int {
        case mark, part, chunkSize, process, wallTime, seed0, seed1, keepsPayloads, keepsOutput, foreignCalls,
            argumentsLength
    }
    /// Where the arguments of the program begin in the first page, each with a zero byte at its end.
    static let argumentsStart = 256

    /// The numbers at the begin of a chunk.
    enum ChunkField: Int {
        case mark, tape
        /// The number of the chunk among those of its tape, and below it, in 32 bits, how many of its bytes are used: in one
        /// word, because a process may be killed at any time.
        case numberAndUsed
    }
    static let chunkHead = 64

    /// The files of a record: the first one has its name.
    static func path(_ path: String, part: Int) -> String { part == 1 ? path : "\(path).\(part)" }
}
