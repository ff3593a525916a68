import ExampleTestSupport
import Glibc
import RunLoopUnix
import Testing

@testable import Raft

@Suite("The journal")
struct JournalTests {
    private let directory = TemporaryDirectory()
    private var path: String { directory.path + "/journal" }

    private func load() throws -> Member.Stored { try Journal(at: path).load() }

    private func write(_ records: [Record]) throws {
        let journal = try Journal(at: path)
        _ = try journal.load()
        try journal.append(records)
    }

    private var contents: [UInt8] { get throws { try Disk.current.open(path, .reading).contents() } }

    private func replace(by bytes: [UInt8]) throws {
        let file = try Disk.current.open(path, .writing)
        try file.truncate(to: 0)
        try file.write(bytes, at: 0)
    }

    private static func entry(_ value: String, term: Int = 1) -> Entry {
        Entry(term: term, command: .set(key: "k", value: value))
    }

    @Test("the term, the vote and the log are there at the next start")
    func kept() throws {
        #expect(try load().term == 0)
        try write([.term(1, vote: nil), .term(1, vote: "b"), .entry(Self.entry("1"), at: 1)])
        #expect(try load().vote == "b")
        try write([.entry(Self.entry("2"), at: 2), .entry(Self.entry("3"), at: 3)])
        try write([.term(2, vote: nil), .entry(Self.entry("4", term: 2), at: 2)])
        let stored = try load()
        #expect(stored.term == 2 && stored.vote == nil)
        #expect(stored.log.entries == [Self.entry("1"), Self.entry("4", term: 2)])
    }

    @Test("an end that a crash has left incomplete is cut off, wherever that is")
    func torn() throws {
        try write([.term(1, vote: "b")])
        let withTerm = try contents.count
        try write([.entry(Self.entry("1"), at: 1)])
        let withEntry = try contents.count
        try write([.entry(Self.entry("2"), at: 2)])
        let whole = try contents
        for count in 0..<whole.count {
            // The length may be on the disk before the bytes are.
            for zeros in [0, whole.count - count] {
                try replace(by: whole.prefix(count) + Array(repeating: 0, count: zeros))
                let stored = try load()
                #expect(stored.term == (count >= withTerm ? 1 : 0), "\(count) bytes")
                #expect(stored.log.lastIndex == (count >= withEntry ? 1 : 0), "\(count) bytes")
                #expect(try load().term == stored.term)
            }
        }
    }

    @Test("damage before the end is an error")
    func damaged() throws {
        try write([.term(1, vote: "b"), .entry(Self.entry("1"), at: 1)])
        var bytes = try contents
        bytes[30] ^= 1
        try replace(by: bytes)
        #expect(throws: Journal.Damaged.self) { try load() }
    }

    @Test("a second process does not get the file")
    func locked() throws {
        let journal = try Journal(at: path)
        #expect(throws: SystemError.self) { try Journal(at: path) }
        withExtendedLifetime(journal) {}
    }
}
