internal import Glibc
internal import RunLoopCore

/// The schedule of the present run, in memory that outlives the process.
final class Journal: @unchecked Sendable {
    // Unchecked, but only the thread that runs a schedule writes, and who reads does so when the writer has ended.

    /// The number of the schedule, its seed, and the length of the departures' text, which follows.
    private let header: UnsafeMutablePointer<Int>
    private let text: UnsafeMutableRawPointer

    private static let size = 1 << 20
    private static let capacity = size - 3 * MemoryLayout<Int>.stride

    /// - Parameter descriptor: of a file, which is made as large as a journal.
    init(_ descriptor: Int32) {
        ftruncate(descriptor, off_t(Self.size))
        let memory = mmap(nil, Self.size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
        require(memory != MAP_FAILED, "the journal of an exploration has no memory: errno \(errno)")
        header = memory!.assumingMemoryBound(to: Int.self)
        text = memory! + 3 * MemoryLayout<Int>.stride
    }

    deinit {
        munmap(header, Self.size)
    }

    func begin(_ number: Int, seed: UInt64) {
        header[0] = number
        header[1] = Int(bitPattern: UInt(seed))
        header[2] = 0
    }

    /// Departures beyond what there is room for are lost: such a schedule cannot be replayed.
    func append(_ departure: ScheduleToken.Departure) {
        var words = "\(departure);"
        words.withUTF8 { bytes in
            guard header[2] + bytes.count <= Self.capacity else { return }
            (text + header[2]).copyMemory(from: bytes.baseAddress!, byteCount: bytes.count)
            header[2] += bytes.count
        }
    }

    var number: Int { header[0] }

    var token: ScheduleToken? {
        let departures = String(decoding: UnsafeRawBufferPointer(start: text, count: header[2]), as: UTF8.self)
        return ScheduleToken("\(UInt64(UInt(bitPattern: header[1]))):\(departures)")
    }
}
