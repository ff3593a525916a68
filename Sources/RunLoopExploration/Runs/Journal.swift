internal import Glibc
@_spi(Ports) internal import RunLoopCore
@_spi(Ports) internal import RunLoopSimulation

/// The schedule of the present run, and the marks of the runs before it, in memory that outlives the process.
final class Journal: @unchecked Sendable {
    // Unchecked, but only the thread that runs a schedule writes, and readers wait for the end of that thread.

    /// The number of the schedule and its seed, and the lengths of the texts.
    private struct Header {
        var number = 0
        var seed: UInt64 = 0
        var hasBegun = false
        var lengths: (departures: Int, entries: Int) = (0, 0)
        var marksLength = 0
        /// `true` if entries of the trace were lost.
        var isCut = false
    }

    private let header: UnsafeMutablePointer<Header>
    private let departures: UnsafeMutableRawPointer
    private let entries: UnsafeMutableRawPointer
    private let knownMarks: UnsafeMutableRawPointer

    private static let room = 1 << 24
    private static let size = 3 * room + 4096

    /// - Parameter descriptor: a descriptor of fresh memory, which is made as large as a journal.
    init(_ descriptor: Int32) {
        ftruncate(descriptor, off_t(Self.size))
        let memory = mmap(nil, Self.size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
        require(memory != MAP_FAILED, "the journal of an exploration has no memory: errno \(errno)")
        header = memory!.assumingMemoryBound(to: Header.self)
        departures = memory! + 4096
        entries = departures + Self.room
        knownMarks = entries + Self.room
    }

    deinit {
        munmap(header, Self.size)
    }

    func begin(_ number: Int, seed: UInt64) {
        header.pointee = Header(number: number, seed: seed, hasBegun: true, marksLength: header.pointee.marksLength)
    }

    /// Appends a departure. Departures beyond the available room are lost: such a schedule cannot be replayed.
    func append(_ departure: ScheduleToken.Departure) {
        Self.append("\(departure);", to: departures, &header.pointee.lengths.departures)
    }

    /// Appends an entry of the trace. Entries beyond the available room are lost.
    func append(_ entry: Trace.Entry) {
        let isKept = Self.append("\(entry)\n", to: entries, &header.pointee.lengths.entries)
        if !isKept { header.pointee.isCut = true }
    }

    /// Appends the lines of a look at the threads.
    func append(look lines: [String]) {
        let fields = lines.map { Lines.escaped($0) }
        Self.append(Self.lookMark + fields.joined(separator: "\t") + "\n", to: entries, &header.pointee.lengths.entries)
    }

    private static let lookMark = "look\t"

    /// Appends the marks of a run. Marks beyond the available room are not counted.
    func append(_ marks: Simulation.Marks) {
        for (mark, count) in marks.counts {
            let line = (count > 0 ? "+" : "-") + Lines.escaped(mark) + "\n"
            Self.append(line, to: knownMarks, &header.pointee.marksLength)
        }
    }

    /// Takes the marks of all runs since the last call. No run may be under way.
    func takeMarks() -> Simulation.Marks {
        var marks = Simulation.Marks()
        for line in Self.text(knownMarks, header.pointee.marksLength).split(separator: "\n") {
            guard let mark = String(unescaping: line.dropFirst()) else { continue }
            marks.meet(mark, line.first == "+")
        }
        header.pointee.marksLength = 0
        return marks
    }

    /// - Returns: `true` if there was room.
    @discardableResult
    private static func append(_ words: String, to memory: UnsafeMutableRawPointer, _ length: inout Int) -> Bool {
        var words = words
        return words.withUTF8 { bytes in
            guard length + bytes.count <= room else { return false }
            (memory + length).copyMemory(from: bytes.baseAddress!, byteCount: bytes.count)
            length += bytes.count
            return true
        }
    }

    var hasBegun: Bool { header.pointee.hasBegun }

    var number: Int { header.pointee.number }

    var token: ScheduleToken? {
        ScheduleToken("\(header.pointee.seed):\(Self.text(departures, header.pointee.lengths.departures))")
    }

    private var lines: [Substring] { Self.text(entries, header.pointee.lengths.entries).split(separator: "\n") }

    /// The trace of the run so far.
    var trace: Trace {
        var trace = Trace()
        trace.isCut = header.pointee.isCut
        trace.entries = lines.compactMap { Trace.Entry(String($0)) }
        return trace
    }

    var look: [String]? {
        lines.last { $0.hasPrefix(Self.lookMark) }.map { line in
            line.dropFirst(Self.lookMark.count).split(separator: "\t").compactMap { String(unescaping: $0) }
        }
    }

    private static func text(_ memory: UnsafeMutableRawPointer, _ length: Int) -> String {
        String(decoding: UnsafeRawBufferPointer(start: memory, count: length), as: UTF8.self)
    }
}
