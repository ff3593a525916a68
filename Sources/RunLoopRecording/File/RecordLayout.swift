/// The parts of a record's file: a page that describes the run, and chunks, each of one thread's tape.
///
/// Numbers are 64 bits long and in the byte order of the machine.
enum RecordLayout {
    static let pageSize = 4096
    static let mark: UInt64 = 0x3130_4452_4f43_4552  // "RECORD01"
    static let chunkMark: UInt64 = 0x4b4e_5548_43  // "CHUNK"

    /// The numbers of the first page, by their places.
    enum Field: Int {
        case mark, part, chunkSize, process, wallTime, seed0, seed1, keepsPayloads, foreignCalls, argumentsLength
    }
    /// Where the arguments of the program begin in the first page, each with a zero byte at its end.
    static let argumentsStart = 256

    /// The numbers at the begin of a chunk.
    enum ChunkField: Int {
        case mark, tape, number, used
    }
    static let chunkHead = 64

    /// The files of a record: the first one has its name.
    static func path(_ path: String, part: Int) -> String { part == 1 ? path : "\(path).\(part)" }
}
