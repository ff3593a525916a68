import Glibc
import RunLoopKit
import RunLoopUnix

/// The records of a member in a file, one line each. One thread at a time may use it; each call blocks for the disk.
///
/// A line is a checksum and the words of a record. The file is locked as long as it is open.
final class Journal: @unchecked Sendable {
    private static let header = "raft 1"

    private let file: File
    /// The number of bytes in complete lines.
    private var length = 0

    /// The error for a file that is no journal, or is damaged other than at its end.
    struct Damaged: Error, CustomStringConvertible {
        let description: String
    }

    /// - Throws: `SystemError` if another process has locked the file, or if it cannot be created.
    init(at path: String) throws(SystemError) {
        file = try Disk.current.open(path, .readingAndWritingLocked)
    }

    /// Reads all records, and cuts off a last line that a crash has left incomplete; begins the file if it is empty.
    ///
    /// - Throws: ``Damaged``, or `SystemError`.
    func load() throws -> Member.Stored {
        var stored = Member.Stored()
        var lines = 0
        var rest = try file.contents()[...]
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")), let words = Self.words(in: rest[..<end]) {
            do {
                try Self.read(words, isFirst: lines == 0, into: &stored)
            } catch {
                throw Damaged(description: "\(file.path):\(lines + 1): this is no record of this version")
            }
            lines += 1
            rest = rest[(end + 1)...]
        }
        length = rest.startIndex
        // After a crash, no complete lines follow an incomplete one.
        let others = rest.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).dropFirst()
        if others.contains(where: { Self.words(in: $0) != nil }) {
            throw Damaged(description: "\(file.path):\(lines + 1): damaged")
        }
        RunLoop.sometimes("a torn end of a journal was cut off", if: !rest.isEmpty)
        if !rest.isEmpty { try file.truncate(to: length) }
        if lines == 0 { try write(Self.header) }
        try file.sync()
        try Disk.current.syncDirectory(of: file.path)
        return stored
    }

    /// Appends records, and returns when they are on the disk. After an error, any of them may be.
    func append(_ records: [Record]) throws(SystemError) {
        try write(records.map(\.words).joined(separator: "\n"))
        try file.sync()
    }

    private func write(_ text: String) throws(SystemError) {
        let lines = text.split(separator: "\n").map { "\(Self.checksum($0.utf8)) \($0)\n" }
        let bytes = Array(lines.joined().utf8)
        try file.write(bytes, at: length)
        length += bytes.count
    }

    private static func read(
        _ words: String, isFirst: Bool, into stored: inout Member.Stored
    ) throws(Words.Malformed) {
        guard !isFirst else {
            if words != header { throw Words.Malformed() }
            return
        }
        switch try Record(words) {
        case .term(let term, let vote): (stored.term, stored.vote) = (term, vote)
        case .entry(let entry, let index):
            guard (1...stored.log.lastIndex + 1).contains(index) else { throw Words.Malformed() }
            stored.log.put(entry, at: index)
        }
    }

    // MARK: Lines

    /// Returns the words after the checksum of a line; `nil` if the checksum is wrong.
    private static func words(in line: some Collection<UInt8>) -> String? {
        let text = String(decoding: line, as: UTF8.self)
        guard let space = text.firstIndex(of: " ") else { return nil }
        let words = text[text.index(after: space)...]
        return text[..<space] == checksum(words.utf8) ? String(words) : nil
    }

    /// Returns a checksum by FNV-1a, enough to recognise an incomplete line.
    private static func checksum(_ bytes: some Sequence<UInt8>) -> String {
        let sum = bytes.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        return String(sum, radix: 16)
    }
}

extension Record {
    var words: String {
        switch self {
        case .term(let term, let vote): "term \(term)\(vote.map { " \($0)" } ?? "")"
        case .entry(let entry, let index): "entry \(index) \(entry.words)"
        }
    }

    init(_ line: String) throws(Words.Malformed) {
        var words = Words(line)
        switch try words.next() {
        case "term": self = .term(try words.number(), vote: words.isAtEnd ? nil : try words.next())
        case "entry":
            let index = try words.number()
            self = .entry(try Entry(&words), at: index)
        default: throw Words.Malformed()
        }
        try words.end()
    }
}
